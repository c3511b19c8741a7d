"""Both gates on synthetic runs whose drafts are the same at every depth by construction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.records import RequestRecord, RunFacts, Trace
from kit.stats import Disclosure, GateWord
from tests.builders import build_run, build_spec, eagle3, edit_requests, shared_run


def test_equal_positions_agree_exactly_where_the_draft_is_invariant() -> None:
    gates = analyse(shared_run()).gates
    assert gates.v2.cells
    assert all(cell.d2.point == 0 and cell.only_a == cell.only_b == 0 for cell in gates.v2.cells)
    assert gates.v2.word is GateWord.INCONCLUSIVE
    assert gates.prompts_needed == 149


def test_round_starts_of_depth_three_are_starts_of_depth_one() -> None:
    # theorem 1: 1 + 1 divides 3 + 1; the end of a text may cut the last round
    for cell in analyse(shared_run()).gates.v2.cells:
        assert (cell.aligned_share or 0) > 0.9


def test_the_control_is_the_same_depth_at_two_concurrencies() -> None:
    gates = analyse(shared_run()).gates
    assert {(cell.K_a, cell.K_b) for cell in gates.v2.control} == {(1, 1), (3, 3)}
    assert all(cell.d2.point == 0 for cell in gates.v2.control)


def test_movement_without_a_change_of_the_draft_is_all_selection() -> None:
    for move in analyse(shared_run()).gates.movements:
        assert move.movement is not None
        assert move.movement.behaviour == 0
        parts = move.movement.between_classes + move.movement.within_classes + move.movement.boundary
        assert parts == pytest.approx(move.movement.total)


def test_the_conversion_explains_an_invariant_draft() -> None:
    first = [r.residual for r in analyse(shared_run()).gates.residuals if r.residual.k == 1]
    assert first
    assert all(abs(r.residual.point or 0) < abs(r.raw_difference.point or 0) + 0.02 for r in first)


def test_a_gate_level_that_is_not_listed_takes_no_part() -> None:
    gates = analyse(build_run(build_spec(gate={"concurrency": [4], "bootstrap_draws": 50}))).gates
    assert {cell.concurrency for cell in gates.v1.cells} == {4}


def test_one_depth_gives_no_gate_and_the_reason() -> None:
    gates = analyse(build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, eagle3(3)]))).gates
    assert (len(gates.v1.cells), len(gates.v2.cells)) == (0, 0)
    assert gates.v1.reason is not None
    assert gates.reading.curve_oracle is Disclosure.WITHHELD


def test_without_a_trace_v1_stands_and_v2_has_nothing_to_align() -> None:
    gates = analyse(replace(shared_run(), trace=Trace.empty())).gates
    assert gates.v1.cells
    assert gates.v2.cells == gates.v2.control == ()
    assert gates.v2.reason == "no pair of depths was aligned"


def worse_at_one(facts: RunFacts) -> RunFacts:
    """Every draft of depth 1 refused: the draft itself depends on K."""

    def refuse(request: RequestRecord) -> RequestRecord:
        rounds = (request.completion_tokens or 0) - 1
        return replace(request, histogram=(rounds,), verify_rounds=rounds, correct_drafts=0)

    return edit_requests(facts, refuse, arm="eagle3_k1")


def test_a_draft_that_changes_with_k_fails_v1() -> None:
    gates = analyse(worse_at_one(shared_run())).gates
    assert gates.v1.word is GateWord.FAIL
    assert gates.naive_passes is False
    assert gates.reading.curve_oracle is Disclosure.WITHHELD


def test_only_prompts_that_every_depth_has_are_compared() -> None:
    def forget(request: RequestRecord) -> RequestRecord:
        return replace(request, histogram=None, verify_rounds=None, correct_drafts=None)

    gates = analyse(edit_requests(shared_run(), forget, arm="eagle3_k1", first=4)).gates
    whole = analyse(shared_run()).gates
    assert sum(c.difference.n for c in gates.v1.cells) == sum(c.difference.n for c in whole.v1.cells) - 4
