"""Doubts merge pessimistically, and a check that cannot be carried out is never a pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.analysis import CellResult, analyse
from kit.checks import (
    CHECKS,
    CellState,
    Code,
    Doubt,
    Evidence,
    Scope,
    Severity,
    cell_states,
    check_run,
    evidence_of,
    run_checks,
)
from tests.builders import edit_launches, shared_run

CELLS: tuple[CellResult, ...] = analyse(shared_run()).cells


def doubt(severity: Severity, *, scope: Scope, cell: CellResult) -> Doubt:
    """A doubt of this scope that points at `cell` or at what it is part of."""
    return Doubt(
        Code.FEW_WAVES,
        severity,
        scope,
        "message",
        "hint",
        arm=None if scope is Scope.RUN else cell.arm,
        launch=cell.launch if scope in (Scope.LAUNCH, Scope.CELL) else None,
        cell=cell.cell if scope is Scope.CELL else None,
    )


def test_a_sound_run_is_valid_throughout() -> None:
    analysis = analyse(shared_run())
    assert check_run(shared_run(), analysis) == ()
    assert {state.state for state in cell_states(analysis.cells, ())} == {CellState.VALID}


@pytest.mark.parametrize(("scope", "severity"), list(product(Scope, Severity)))
def test_a_doubt_reaches_what_it_points_at_and_nothing_else(scope: Scope, severity: Severity) -> None:
    target = CELLS[4]
    parts = {
        Scope.RUN: {c.cell for c in CELLS},
        Scope.ARM: {c.cell for c in CELLS if c.arm == target.arm},
        Scope.LAUNCH: {c.cell for c in CELLS if c.launch == target.launch},
        Scope.CELL: {target.cell},
    }
    expected = {
        Severity.INVALID: CellState.INVALID,
        Severity.UNKNOWN: CellState.UNKNOWN,
        Severity.DOUBT: CellState.VALID,
    }
    states = {s.cell: s for s in cell_states(CELLS, (doubt(severity, scope=scope, cell=target),))}
    for cell, state in states.items():
        assert state.state is (expected[severity] if cell in parts[scope] else CellState.VALID)
        assert bool(state.causes) is (state.state is not CellState.VALID)


@given(st.lists(st.sampled_from(Severity)))
def test_the_worst_doubt_decides_in_any_order(severities: list[Severity]) -> None:
    doubts = [doubt(severity, scope=Scope.RUN, cell=CELLS[0]) for severity in severities]
    states = {state.state for state in cell_states(CELLS, doubts)}
    if Severity.INVALID in severities:
        assert states == {CellState.INVALID}
    elif Severity.UNKNOWN in severities:
        assert states == {CellState.UNKNOWN}
    else:
        assert states == {CellState.VALID}


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), ValueError("x"), ZeroDivisionError("x")])
def test_a_check_that_cannot_be_carried_out_makes_every_cell_unknown(error: Exception) -> None:
    def broken(evidence: Evidence) -> Iterator[Doubt]:
        yield doubt(Severity.DOUBT, scope=Scope.RUN, cell=CELLS[0])
        raise error

    doubts = run_checks((broken,), evidence_of(shared_run(), analyse(shared_run())))
    assert [(d.code, d.severity) for d in doubts] == [(Code.CHECK_CRASHED, Severity.UNKNOWN)]
    assert "broken" in doubts[0].message
    assert {s.state for s in cell_states(CELLS, doubts)} == {CellState.UNKNOWN}


def test_a_defect_of_the_kit_is_not_swallowed() -> None:
    def defective(evidence: Evidence) -> Iterator[Doubt]:
        if evidence:
            raise NotImplementedError
        yield doubt(Severity.DOUBT, scope=Scope.RUN, cell=CELLS[0])

    with pytest.raises(NotImplementedError):
        run_checks((defective,), evidence_of(shared_run(), analyse(shared_run())))


def test_nonsense_from_a_server_is_a_doubt_and_not_a_crash() -> None:
    nonsense = edit_launches(
        shared_run(),
        lambda one: replace(one, server_info={**(one.server_info or {}), "speckit_trace": 7}),
    )
    crashed = [d for d in check_run(nonsense, analyse(nonsense)) if d.code is Code.CHECK_CRASHED]
    assert {d.message.split("`")[1] for d in crashed} == {"trace_loss"}


def test_the_worst_come_first() -> None:
    facts = replace(shared_run(), header=replace(shared_run().header, declarations=("x",), spec_hash="0" * 64))
    severities = [d.severity for d in check_run(facts, analyse(facts))]
    assert severities == [Severity.INVALID, Severity.DOUBT]


def test_every_check_is_listed_once() -> None:
    assert len(set(CHECKS)) == len(CHECKS)
