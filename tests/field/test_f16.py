"""44 prompts for 32 slots: ramp and tail are half of the run, and its average belongs to no concurrency."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kit.checks import CellState, Code
from kit.records import RequestRecord, RunFacts
from kit.verdict import Verdict, judge
from tests.builders import build_run, build_spec
from tests.field.inputs import objects, rows

ROWS, RUN = rows("F16", "requests.jsonl"), objects("F16", "run.json")
NS = 1_000_000_000


def record(row: dict[str, Any], blank: RequestRecord, *, index: int) -> RequestRecord:
    """A request whose tokens are spread evenly over its life."""
    sent, ended, tokens = round(row["start_s"] * NS), round(row["end_s"] * NS), row["completion_tokens"]
    stamps = np.linspace(sent, ended, tokens + 1)[1:].round().astype(np.int64)
    return replace(
        blank,
        index=index,
        rid=f"r{index}",
        prompt=f"p{index}",
        sent_ns=sent,
        ended_ns=ended,
        first_token_ns=int(stamps[0]),
        completion_tokens=tokens,
        max_new_tokens=tokens,
        chunk_ns=stamps,
        chunk_tokens=np.ones(tokens, np.int64),
        output_ids=np.arange(tokens),
    )


def run(requests: list[dict[str, Any]]) -> RunFacts:
    """One cell at the nominal concurrency that holds exactly these requests."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "baseline"}],
        load={"concurrency": [RUN["max_concurrency"]], "waves": 1},
        server={"max_running_requests": 64},
        workload={"prompts": 64},
        design={"blocks": 1},
    )
    facts = build_run(spec)
    blank = facts.requests[0]
    placed = tuple(record(row, blank, index=at) for at, row in enumerate(requests))
    return replace(facts, requests=placed, repetitions=(replace(facts.repetitions[0], started_ns=0, ended_ns=60 * NS),))


def waves(verdict: Verdict) -> list[str]:
    """What is said of the number of requests."""
    return [one.message for one in verdict.doubts.doubts if one.code in (Code.FEW_WAVES, Code.NO_STEADY_WINDOW)]


def test_the_whole_run_the_window_and_the_achieved_concurrency_are_three_numbers() -> None:
    (cell,) = judge(run(ROWS)).speed.cells
    assert (cell.requests, cell.output_tokens) == (RUN["num_prompts"], 36467)
    assert cell.throughput_full_run.point == pytest.approx(1254, abs=0.5)
    assert cell.achieved_concurrency.point == pytest.approx(20.9, abs=0.05)
    assert cell.window is not None
    assert cell.window.start_s == 0.0
    assert cell.window.end_s == pytest.approx(13.4, abs=0.15)
    assert cell.window.tokens / cell.window.end_s == pytest.approx(1919, rel=0.01)


def test_the_point_has_no_throughput_and_says_how_many_waves_it_was() -> None:
    verdict = judge(run(ROWS))
    (cell,) = verdict.speed.cells
    assert cell.throughput_window.point is None
    assert {state.state for state in verdict.doubts.cells} == {CellState.INVALID}
    told = " | ".join(waves(verdict))
    assert "44 requests are 1.4 waves" in told
    assert "send more waves" in told


def test_no_saturation_is_fitted_through_it() -> None:
    verdict = judge(run(ROWS))
    (arm,) = verdict.saturation
    assert (arm.saturation.fit, arm.saturation.x_max.point) == (None, None)
    assert "valid cell" in (arm.saturation.x_max.reason or "")


def test_enough_waves_of_the_same_load_give_the_rate_of_the_full_slots() -> None:
    rng = np.random.default_rng(4)
    free, requests = [0.0] * RUN["max_concurrency"], []
    for _ in range(6 * RUN["max_concurrency"]):
        slot = int(np.argmin(free))
        tokens = int(rng.integers(480, 1200))
        begin, free[slot] = free[slot], free[slot] + tokens / 60.0
        requests.append({"start_s": begin, "end_s": free[slot], "completion_tokens": tokens})
    verdict = judge(run(requests))
    (cell,) = verdict.speed.cells
    assert cell.throughput_window.point == pytest.approx(32 * 60, rel=0.01)
    assert (cell.throughput_full_run.point or 0) < 0.95 * (cell.throughput_window.point or 0)
    assert waves(verdict) == []
