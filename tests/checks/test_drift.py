"""Drift: the closing baseline against those of the blocks."""

from __future__ import annotations

import pytest

from kit.analysis import analyse
from kit.checks import CellState, Code, Severity, cell_states, check_run
from kit.records import RunFacts
from tests.builders import build_run, build_spec

SPEC = build_spec(design={"closing_baseline": True})


def run(factor: float) -> RunFacts:
    """A run on a quiet host whose last launch, the closing baseline, is slower by this factor."""
    iterations = 0
    total = _iterations_before_the_last_launch()

    def cost(depth: int, batch: int) -> float:
        nonlocal iterations
        iterations += 1
        return (0.012 if depth else 0.010) * (factor if iterations > total else 1.0)

    return build_run(SPEC, cost=cost, noise=0.0)


def _iterations_before_the_last_launch() -> int:
    launches = build_run(SPEC, cost=lambda depth, batch: 0.010, noise=0.0).trace.iterations.launch
    return int((launches < launches.max()).sum())


@pytest.mark.parametrize(("factor", "cells"), [(1.0, 0), (1.015, 0), (1.2, 2), (0.8, 2)])
def test_a_closing_baseline_outside_of_the_earlier_ones_is_a_doubt_that_voids_nothing(
    factor: float, cells: int
) -> None:
    facts = run(factor)
    analysis = analyse(facts)
    doubts = check_run(facts, analysis)
    found = [one for one in doubts if one.code is Code.DRIFT]
    assert [one.severity for one in found] == [Severity.DOUBT] * cells
    assert {one.state for one in cell_states(analysis.cells, doubts)} == {CellState.VALID}
