"""Above the largest captured batch decoding runs without a graph: the step down is a ceiling, not the crossover."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kit.checks import CellState, Code
from kit.records import RunFacts
from kit.sglang import decode_lines, eager_from
from kit.verdict import Verdict, judge
from tests.builders import build_run, build_spec, eagle3, edit_launches
from tests.field.inputs import text

LOGS = {arm: text("F22", f"server_{arm}.log") for arm in ("none", "k3")}
LEVELS = (32, 33)


@cache
def run() -> RunFacts:
    """A run around the ceiling, in which a batch without a graph costs half as much again."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "none"}, eagle3(3) | {"name": "k3"}],
        load={"concurrency": list(LEVELS), "waves": 4},
        server={"max_running_requests": 64},
        workload={"prompts": 3 * 132, "min_output_tokens": 6, "max_output_tokens": 9},
    )
    return build_run(spec, cost=lambda depth, batch: 0.010 * (1.5 if depth and batch > 32 else 1.0))


def logged(logs: dict[str, str]) -> RunFacts:
    """The run with these logs and no trace."""
    none = np.empty(0, np.int64)
    trace = run().trace
    its = replace(
        trace.iterations,
        launch=none,
        number=none,
        ready_ns=none,
        draft_tokens=none,
        batch_size=none,
        cuda_graph=none > 0,
    )
    rounds = replace(trace.rounds, iteration=none, rid=none, tokens_before=none, accepted=none, ghost=none > 0)
    facts = replace(run(), trace=replace(trace, iterations=its, rounds=rounds, rids=()))
    return edit_launches(facts, lambda one: replace(one, log=logs[one.arm]))


def traced() -> RunFacts:
    """The run with the same fact in its trace."""
    its, arms = run().trace.iterations, {launch.launch: launch.arm for launch in run().launches}
    speculating = np.array([arms[launch] == "k3" for launch in its.launch.tolist()])
    graph = ~(speculating & (its.batch_size > 32))
    return replace(run(), trace=replace(run().trace, iterations=replace(its, cuda_graph=graph)))


def eager(verdict: Verdict) -> set[tuple[str, int]]:
    """Cells that are void because they decoded without graphs."""
    found = {(one.arm, one.concurrency) for one in verdict.doubts.cells if Code.EAGER_DECODE in one.causes}
    assert all(one.state is CellState.INVALID for one in verdict.doubts.cells if (one.arm, one.concurrency) in found)
    return found


def test_the_step_is_where_the_graphs_end() -> None:
    by_batch = {line.running: line for line in decode_lines(LOGS["k3"])}
    assert (by_batch[32].cuda_graph, by_batch[33].cuda_graph) == (True, False)
    assert (by_batch[33].throughput or 0) / (by_batch[32].throughput or 1) - 1 == pytest.approx(-0.36, abs=0.005)
    plain = {line.running: line.throughput or 0 for line in decode_lines(LOGS["none"])}
    ratios = {batch: (by_batch[batch].throughput or 0) / plain[batch] for batch in LEVELS}
    assert ratios == {32: pytest.approx(1.09, abs=0.005), 33: pytest.approx(0.68, abs=0.005)}
    assert {arm: eager_from(log) for arm, log in LOGS.items()} == {"none": None, "k3": 33}


@pytest.mark.parametrize("source", ["log", "trace"])
def test_cells_above_the_ceiling_are_marked_and_get_no_ratio(source: str) -> None:
    verdict = judge(logged(LOGS) if source == "log" else traced())
    assert eager(verdict) == {("k3", 33)}
    told = {one.comparison.concurrency: one for one in verdict.speed.comparisons}
    assert told[33].comparison.ratio.point is None
    remedies = {one.hint for one in verdict.doubts.doubts if one.code is Code.EAGER_DECODE}
    assert all("cuda_graph_batch_sizes" in hint for hint in remedies)


def test_no_crossover_is_found_across_the_step() -> None:
    (crossover,) = judge(traced()).speed.crossovers
    assert crossover.result.concurrency.point is None
    assert "fewer than two levels with a ratio" in (crossover.result.concurrency.reason or "")


def test_a_batch_that_is_seen_with_and_without_a_graph_is_no_ceiling() -> None:
    line = "Decode batch, #running-req: {}, #token: 9, cuda graph: {}, gen throughput (token/s): 9.00, #queue-req: 0\n"
    mixed = line.format(8, False) + line.format(16, True) + line.format(16, False)
    assert eager_from(mixed) is None
    assert eager_from(mixed + line.format(24, False)) == 24


@pytest.mark.parametrize("head", ["Decode batch, ", "Decode batch. ", "Decode batch [41], "])
def test_every_generation_of_the_line_is_read(head: str) -> None:
    (line,) = decode_lines(f"[2026-01-05 10:00:50 TP0] {head}#running-req: 33, #full token: 9, cuda graph: False\n")
    assert (line.running, line.cuda_graph, line.queued, line.throughput) == (33, False, None, None)
