"""The two gates in worlds whose truth is known, their table, and their arithmetic."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    AlignedPair,
    Disclosure,
    GateSentence,
    GateWord,
    Resampling,
    Rounds,
    StatsError,
    align,
    alignment_gate,
    curve_gate,
    decompose,
    gate2_bound,
    gate2_cell,
    gate_decision,
    holm,
    min_prompts_zero_discordance,
    movement,
    n_needed,
    read_gates,
    starts,
)
from kit.stats.arrays import IntArray
from tests.stats.worlds import Shifted, capture, easy_and_hard_texts, histograms, homogeneous_texts

DEPTHS = (1, 3, 5, 7)
DRAWS = Resampling(seed=1, draws=400)


def invariant(prompts: int, seed: int = 11) -> tuple[IntArray, IntArray]:
    return easy_and_hard_texts(prompts, seed=seed)


def pair(a: Rounds, b: Rounds, prompts: int, *, K_a: int, K_b: int) -> AlignedPair:
    return AlignedPair(8, K_a, K_b, align(a, b=b, prompts=prompts))


def test_v1_refuses_a_curve_that_moves_though_the_draft_does_not() -> None:
    runs, classes = invariant(192)
    gate = curve_gate({8: {K: histograms(runs, K=K) for K in DEPTHS}}, resampling=DRAWS, strata=classes)
    assert gate.word is GateWord.FAIL and len(gate.cells) == 14
    assert gate.worst is not None and (gate.worst.K_a, gate.worst.K_b, gate.worst.k) == (1, 7, 1)
    assert gate.legacy_exceeded and gate.reason is None
    functional = gate.functional[0]
    assert functional.worst.point is not None and functional.worst.point > 0.03 and not functional.within()
    assert functional.by_depth[0][0] == 1 and (functional.by_depth[0][1].point or 0) < 0


def test_v1_passes_a_homogeneous_world() -> None:
    runs = homogeneous_texts(256, seed=12, rate=0.4)
    gate = curve_gate({8: {K: histograms(runs, K=K) for K in DEPTHS}}, resampling=DRAWS)
    assert gate.word is GateWord.PASS and gate.functional[0].within()


def test_v1_near_its_margin_is_inconclusive_and_says_how_many_prompts_would_do() -> None:
    runs, classes = invariant(16)
    few = curve_gate({8: {K: histograms(runs, K=K) for K in (5, 7)}}, resampling=DRAWS, strata=classes)
    assert few.word is GateWord.INCONCLUSIVE
    assert few.worst is not None and (few.worst.n_needed or 0) > 16
    assert "of 5 cells" in (few.reason or "")
    assert "linearised" in few.worst.difference.method


def test_v1_pairs_prompts_and_counts_cells_over_concurrencies() -> None:
    runs = homogeneous_texts(64, seed=13, rate=0.4)
    captures = {C: {K: histograms(runs, K=K) for K in DEPTHS} for C in (1, 8, 32)}
    gate = curve_gate(captures, resampling=DRAWS)
    assert len(gate.cells) == 42 and len(gate.functional) == 3
    # Identical captures at three concurrencies move together, to the last digit.
    by_cell = [cell.difference for cell in gate.cells]
    assert by_cell[:14] == by_cell[14:28] == by_cell[28:]


def test_v1_without_a_second_depth_or_without_rounds_says_so() -> None:
    runs = homogeneous_texts(8, seed=14, rate=0.4)
    alone = curve_gate({8: {3: histograms(runs, K=3)}}, resampling=DRAWS)
    assert alone.word is GateWord.INCONCLUSIVE and alone.worst is None
    assert alone.reason == "fewer than two depths were captured at one concurrency"
    empty = curve_gate({8: {1: np.zeros((8, 2), np.int64), 3: histograms(runs, K=3)}}, resampling=DRAWS)
    assert empty.word is GateWord.INCONCLUSIVE and empty.cells == ()
    assert empty.functional[0].worst.point is None
    with pytest.raises(StatsError, match="margin"):
        curve_gate({}, resampling=DRAWS, delta=0.0)


def test_v2_passes_an_invariant_world_against_its_control() -> None:
    runs, classes = invariant(192)
    rounds = {K: capture(runs, K=K) for K in DEPTHS}
    pairs = [pair(rounds[1], rounds[7], 192, K_a=1, K_b=7), pair(rounds[3], rounds[7], 192, K_a=3, K_b=7)]
    control = [pair(rounds[3], rounds[3], 192, K_a=3, K_b=3)]
    gate = alignment_gate(pairs, controls=control, strata=classes)
    assert gate.word is GateWord.PASS and gate.reason is None
    first = gate.cells[0]
    assert first.d2.point == 0.0 and first.discordance == 0.0 and first.rule == "zero_discordance"
    assert first.aligned_share is not None and first.aligned_share > 0.94
    assert first.both + first.only_a + first.only_b + first.neither == first.sites
    assert gate.control_word is GateWord.PASS


def test_v2_needs_149_prompts_to_pass_an_exactly_concordant_capture() -> None:
    runs, _ = invariant(148)
    a, b = capture(runs, K=1), capture(runs, K=3)
    control = [pair(a, a, 148, K_a=1, K_b=1)]
    gate = alignment_gate([pair(a, b, 148, K_a=1, K_b=3)], controls=control)
    assert gate.word is GateWord.INCONCLUSIVE
    assert gate.reason == "exactly concordant on 148 prompts; 149 are needed for a bound of 0.02"


def test_v2_fails_a_draft_that_depends_on_depth_even_when_selection_hides_it() -> None:
    runs, classes = invariant(192)
    masked = Shifted(drop=0.2, seed=3).capture(runs, K=1)
    deep = capture(runs, K=7)
    control = [pair(deep, deep, 192, K_a=7, K_b=7)]
    gate = alignment_gate([pair(masked, deep, 192, K_a=1, K_b=7)], controls=control, strata=classes)
    assert gate.word is GateWord.FAIL
    assert (gate.cells[0].d2.point or 0) < -0.05 and gate.cells[0].rule == "cluster"


def test_v2_says_nothing_without_a_control_or_against_a_failing_one() -> None:
    runs, _ = invariant(192)
    a, b, noisy = capture(runs, K=1), capture(runs, K=3), Shifted(drop=0.2, seed=4).capture(runs, K=1)
    without = alignment_gate([pair(a, b, 192, K_a=1, K_b=3)], controls=[])
    assert without.word is GateWord.INCONCLUSIVE and without.reason == "no same-K control was captured"
    against = alignment_gate([pair(a, b, 192, K_a=1, K_b=3)], controls=[pair(a, noisy, 192, K_a=1, K_b=1)])
    assert against.word is GateWord.INCONCLUSIVE and "already differ" in (against.reason or "")
    nothing = alignment_gate([], controls=[])
    assert nothing.word is GateWord.INCONCLUSIVE and nothing.reason == "no pair of depths was aligned"


def test_sites_after_the_first_divergence_are_not_compared() -> None:
    runs, _ = invariant(16)
    a, b = capture(runs, K=1), capture(runs, K=3)
    limits = np.full(16, 40)
    limits[0] = -1
    early = align(a, b=b, prompts=16, divergence=limits)
    whole = align(a, b=b, prompts=16)
    assert len(early.prompt) < len(whole.prompt)
    assert (early.prompt == 0).sum() == (whole.prompt == 0).sum()
    gate = alignment_gate([AlignedPair(8, 1, 3, early)], controls=[AlignedPair(8, 1, 1, align(a, b=a, prompts=16))])
    assert "below 50%" in (gate.reason or "")


accepted_lists = st.lists(st.integers(0, 3), min_size=1, max_size=8)


@given(st.lists(st.tuples(accepted_lists, accepted_lists, st.integers(-1, 20)), min_size=1, max_size=4))
def test_joining_whole_captures_agrees_with_joining_prompt_by_prompt(
    prompts: list[tuple[list[int], list[int], int]],
) -> None:
    def captured(runs: list[list[int]]) -> Rounds:
        owner = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
        return Rounds.of(owner, active=3, accepted=[j for run in runs for j in run])

    one, other = captured([run for run, _, _ in prompts]), captured([run for _, run, _ in prompts])
    joined = align(one, b=other, prompts=len(prompts), divergence=[D for _, _, D in prompts])
    maps = [
        [dict(zip(starts(a), a, strict=True)), dict(zip(starts(b), b, strict=True)), None if D < 0 else D]
        for a, b, D in prompts
    ]
    cell = gate2_cell(maps, k=2)
    assert [sums.tolist() for sums in joined.sums(2)] == [cell["X"], cell["M"]]


run_maps = st.dictionaries(st.integers(1, 40), st.integers(0, 3), min_size=1, max_size=12)


@given(st.lists(st.tuples(run_maps, run_maps, st.none() | st.integers(1, 40)), min_size=1, max_size=5))
def test_identical_traces_agree_and_swapping_them_changes_the_sign(
    prompts: list[tuple[dict[int, int], dict[int, int], int | None]],
) -> None:
    same = gate2_cell([[a, a, D] for a, _, D in prompts], k=1)
    assert same["discordant_prompts"] == 0 and (same["diff"] or 0.0) == 0.0
    there, back = (gate2_cell([[p[i], p[1 - i], p[2]] for p in prompts], k=2) for i in (0, 1))
    assert there["sites"] == back["sites"] and (there["diff"] or 0) == -(back["diff"] or 0)


@given(st.lists(st.tuples(run_maps, run_maps), min_size=1, max_size=5))
def test_the_three_parts_add_up_to_the_movement(prompts: list[tuple[dict[int, int], dict[int, int]]]) -> None:
    parts = decompose([{"a": a, "b": b} for a, b in prompts])
    if parts["total"] is None:
        assert parts["aligned_sites"] == 0
        return
    named = (parts["composition"], parts["boundary"], parts["behaviour"])
    assert sum(part or 0.0 for part in named) == pytest.approx(parts["total"])


def test_an_invariant_movement_has_composition_and_boundaries_and_no_behaviour() -> None:
    runs, classes = invariant(256)
    a, b = capture(runs, K=1), capture(runs, K=7)
    parts = movement(
        align(a, b=b, prompts=256), hists_a=histograms(runs, K=1), hists_b=histograms(runs, K=7), strata=classes
    )
    assert parts is not None and parts.behaviour == 0.0
    assert min(parts.between_classes, parts.within_classes, parts.boundary) > 0.002
    split = parts.between_classes + parts.within_classes + parts.boundary + parts.behaviour
    assert split == pytest.approx(parts.total)
    nothing = np.zeros((256, 2), np.int64)
    assert movement(align(a, b=b, prompts=256), hists_a=nothing, hists_b=nothing) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_monotone_conservative_and_order_free(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(q >= raw or q == 1 for q, raw in zip(adjusted, p, strict=True))
    assert sorted(adjusted) == [q for _, q in sorted(zip(p, adjusted, strict=True))]
    assert holm(p[::-1]) == adjusted[::-1]
    assert min(adjusted) == pytest.approx(min(1.0, len(p) * min(p)))


def test_arithmetic_at_the_edges() -> None:
    assert gate_decision([], delta=0.02)["verdict"] == "INCONCLUSIVE"
    assert gate_decision([[0.0, 0.0]], delta=0.02)["verdict"] == "PASS"
    assert gate_decision([[0.5, 0.0]], delta=0.02)["verdict"] == "FAIL"
    assert n_needed(10, d=0.02, se=0.01, delta=0.02) is None
    assert gate2_bound([], M=[], delta=0.02)["bound"] is None
    assert gate2_bound([0, 0], M=[0, 0], delta=0.02)["rule"] == "no_sites"
    lone = gate2_bound([1], M=[5], delta=0.02)
    assert lone["rule"] == "lone_prompt" and lone["se"] is None and not lone["inside"]
    assert min_prompts_zero_discordance(0.02) == 149
    with pytest.raises(StatsError, match="between 0 and 1"):
        min_prompts_zero_discordance(0.0)


def test_v2_can_withhold_and_never_release() -> None:
    for v1, v2 in product(GateWord, GateWord):
        reading = read_gates(v1, v2=v2, functional_within=True)
        shown = reading.curve_oracle in (Disclosure.REPORTED, Disclosure.FLAGGED)
        assert shown is (v1 is GateWord.PASS and v2 is not GateWord.FAIL)
    veto = read_gates(GateWord.PASS, v2=GateWord.FAIL, functional_within=True)
    assert (veto.curve_oracle, veto.sentence) == (Disclosure.VETOED, GateSentence.MASKED)


def test_a_functional_error_beyond_its_limit_withholds_the_curve_gap() -> None:
    reading = read_gates(GateWord.PASS, v2=GateWord.PASS, functional_within=False)
    assert reading.curve_oracle is Disclosure.WITHHELD and reading.functional_blocks
    failed = read_gates(GateWord.FAIL, v2=GateWord.PASS, functional_within=False)
    assert failed.replay_oracle is Disclosure.SECONDARY and not failed.functional_blocks
