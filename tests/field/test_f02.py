"""The speculating server admits 48 requests where the baseline admits 2048: what it queues is no measurement of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from kit.checks import CellState, Code
from kit.records import Launch, RunFacts
from kit.sglang import admission_limit, decode_lines
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3, edit_launches
from tests.field.inputs import rows, text

RESULTS = rows("F02", "results.jsonl")
LOGS = {arm: text("F02", f"server_{arm}.log") for arm in ("none", "k3")}
LEVELS = sorted({row["max_concurrency"] for row in RESULTS})


@cache
def run() -> RunFacts:
    """A small run at the levels of the case; only who admits what comes from the logs."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "none"}, eagle3(3) | {"name": "k3"}],
        load={"concurrency": LEVELS, "waves": 3, "min_requests": 8},
        server={"max_running_requests": 2048},
        workload={"prompts": 3 * 384, "min_output_tokens": 4, "max_output_tokens": 6},
    )
    return build_run(spec)


def logged(logs: dict[str, str], *, limits: dict[str, int] | None = None) -> RunFacts:
    """The run with these logs; servers tell their limit themselves only where `limits` has one."""

    def change(launch: Launch) -> Launch:
        info = {name: value for name, value in (launch.server_info or {}).items() if name != "max_running_requests"}
        told = {"max_running_requests": limits[launch.arm]} if limits and launch.arm in limits else {}
        return replace(launch, log=logs[launch.arm], server_info=info | told)

    return edit_launches(run(), change)


def capped(facts: RunFacts) -> dict[str, set[int]]:
    """Levels of each arm that are void because the server queued."""
    found: dict[str, set[int]] = {"none": set(), "k3": set()}
    for cell in judge(facts).doubts.cells:
        if Code.QUEUEING in cell.causes:
            assert cell.state is CellState.INVALID
            found[cell.arm].add(cell.concurrency)
    return found


def test_the_limits_are_read_from_the_capacity_lines() -> None:
    assert {arm: admission_limit(log) for arm, log in LOGS.items()} == {"none": 2048, "k3": 48}


def test_the_queue_shows_in_the_log_and_not_in_the_clients_concurrency() -> None:
    assert [(line.running, line.queued) for line in decode_lines(LOGS["k3"])] == [(32, 0), (48, 16), (48, 80), (48, 80)]
    client = [row["client_mean_concurrency"] for row in RESULTS if row["arm"] == "k3"]
    assert client == pytest.approx(LEVELS, rel=0.02)


@pytest.mark.parametrize("source", ["log", "server_info"])
def test_levels_above_the_limit_are_void_and_have_no_ratio(source: str) -> None:
    told = {"none": 2048, "k3": 48}
    facts = logged(LOGS) if source == "log" else logged(dict.fromkeys(LOGS, ""), limits=told)
    assert capped(facts) == {"none": set(), "k3": {64, 128}}
    verdict = judge(facts)
    ratios = {one.comparison.concurrency: one.comparison.ratio.point for one in verdict.speed.comparisons}
    assert {level for level, point in ratios.items() if point is None} == {64, 128}
    messages = {one.message for one in verdict.doubts.doubts if one.code is Code.QUEUEING}
    assert messages == {f"the server runs at most 48 requests, so concurrency {level} queued" for level in (64, 128)}
    assert all("every arm" in one.hint for one in verdict.doubts.doubts if one.code is Code.QUEUEING)


def test_a_limit_of_one_rank_counts_and_what_the_server_says_beats_its_log() -> None:
    assert capped(logged(LOGS, limits={"k3": 24}))["k3"] == {32, 48, 64, 128}
    assert capped(logged(LOGS, limits={"k3": 256}))["k3"] == set()


def test_without_a_limit_anywhere_nothing_is_claimed() -> None:
    verdict = judge(logged(dict.fromkeys(LOGS, "ready")))
    assert {cell.state for cell in verdict.doubts.cells} == {CellState.UNKNOWN}
    assert Code.QUEUEING_UNKNOWN in {one.code for one in verdict.doubts.doubts}
