"""The word of a comparison follows from its interval, the noise threshold and the family it is judged in."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.analysis import CellResult, analyse, compare_speed
from kit.checks import CellJudgement, CellState, Code
from kit.records import Origin
from kit.spec import Spec
from kit.stats import SpeedWord, SweepWord
from kit.verdict import SpeedSection
from kit.verdict.speed import speed_section
from tests.builders import build_spec, eagle3, shared_run

TEMPLATE: CellResult = analyse(shared_run()).cells[0]
ONE_ARM = [{"kind": "baseline", "name": "baseline"}, eagle3(1)]


def measured(ratios: dict[str, dict[int, list[float]]]) -> list[CellResult]:
    """Cells of a baseline at 100 tok/s and of arms at the given ratios, one a block."""
    cells, number = [], count()
    levels = next(iter(ratios.values()))
    for arm, by_level in {"baseline": {c: [1.0] * len(r) for c, r in levels.items()}, **ratios}.items():
        for concurrency, blocks in by_level.items():
            for block, ratio in enumerate(blocks):
                cell = next(number)
                estimate = replace(TEMPLATE.throughput_window, point=100 * ratio)
                cells.append(
                    replace(
                        TEMPLATE,
                        cell=cell,
                        launch=cell,
                        block=block,
                        arm=arm,
                        concurrency=concurrency,
                        throughput_window=estimate,
                        throughput_full_run=estimate,
                    )
                )
    return cells


def judged(
    ratios: dict[str, dict[int, list[float]]],
    spec: Spec,
    *,
    origin: Origin = Origin.MEASURED,
    host: dict[str, object] | None = None,
    invalid: frozenset[int] = frozenset(),
) -> SpeedSection:
    cells = measured(ratios)
    speed = compare_speed(spec, cells, valid=frozenset(c.cell for c in cells) - invalid)
    facts = shared_run()
    header = replace(facts.header, origin=origin, host=host or {})
    states = [
        CellJudgement(c.cell, c.launch, c.arm, c.concurrency, CellState.INVALID, (Code.RETRACTION,))
        for c in cells
        if c.cell in invalid
    ]
    return speed_section(replace(facts, header=header), spec, cells=cells, speed=speed, states=states)


def spread(ratio: float, *, sd: float = 0.002, blocks: int = 5) -> list[float]:
    """Ratios of blocks around `ratio` with about that sd of their logs."""
    return [ratio * math.exp(sd * (i - (blocks - 1) / 2)) for i in range(blocks)]


@pytest.mark.parametrize(
    ("ratio", "sd", "word"),
    [
        (1.10, 0.002, SpeedWord.FASTER),
        (0.90, 0.002, SpeedWord.SLOWER),
        (1.00, 0.002, SpeedWord.EQUIVALENT),
        (1.015, 0.001, SpeedWord.EQUIVALENT),
        (1.02, 0.002, SpeedWord.INCONCLUSIVE),  # on the threshold
        (0.98, 0.002, SpeedWord.INCONCLUSIVE),
        (1.10, 0.080, SpeedWord.INCONCLUSIVE),  # the interval reaches below the threshold
        (1.00, 0.080, SpeedWord.INCONCLUSIVE),  # too wide to be equivalent
    ],
)
def test_a_word_needs_the_whole_interval_on_its_side(ratio: float, sd: float, word: SpeedWord) -> None:
    section = judged({"eagle3_k1": {8: spread(ratio, sd=sd)}}, build_spec(arms=ONE_ARM))
    (one,) = section.comparisons
    assert one.word is word
    assert (one.reason is None) == (word is not SpeedWord.INCONCLUSIVE)
    assert one.p_adjusted is not None


@pytest.mark.parametrize("blocks", [1, 2])
def test_fewer_than_three_blocks_give_no_word(blocks: int) -> None:
    (one,) = judged({"eagle3_k1": {8: [2.0] * blocks}}, build_spec(arms=ONE_ARM)).comparisons
    assert one.word is SpeedWord.INCONCLUSIVE
    assert one.p_adjusted is None
    assert one.reason == f"{blocks} of the 3 blocks that an interval needs"


def test_the_noise_threshold_is_the_specs() -> None:
    ratios = {"eagle3_k1": {8: spread(1.05)}}
    for threshold, word in ((0.01, SpeedWord.FASTER), (0.10, SpeedWord.EQUIVALENT)):
        spec = build_spec(arms=ONE_ARM, decision={"noise_threshold": threshold})
        assert judged(ratios, spec).comparisons[0].word is word


def borderline() -> dict[str, dict[int, list[float]]]:
    """Two arms of the same strength, alone significant and together not."""
    levels = {1: spread(1.06, sd=0.013, blocks=3), 4: spread(1.0, sd=0.08, blocks=3), 8: spread(1.0, sd=0.08, blocks=3)}
    return {"eagle3_k1": levels, "eagle3_k3": levels}


def test_many_comparisons_are_adjusted_and_a_named_candidate_is_not() -> None:
    adjusted = judged(borderline(), build_spec())
    assert adjusted.holm
    assert {one.word for one in adjusted.comparisons} == {SpeedWord.INCONCLUSIVE}
    named = judged(borderline(), build_spec(decision={"candidate": "eagle3_k3"}))
    words = {(one.comparison.arm, one.comparison.concurrency): one.word for one in named.comparisons}
    assert not named.holm
    assert words["eagle3_k3", 1] is SpeedWord.FASTER
    assert words["eagle3_k1", 1] is SpeedWord.INCONCLUSIVE  # the others remain a family


def test_adjustment_never_lowers_a_p() -> None:
    section = judged(borderline(), build_spec())
    for one in section.comparisons:
        assert one.p_adjusted is not None
        assert one.p_adjusted >= min(one.comparison.p_faster, one.comparison.p_slower)


@pytest.mark.parametrize(
    ("ratios", "word", "undecided"),
    [
        ({1: spread(0.9), 8: spread(0.5)}, SweepWord.BASELINE_DOMINATES, ()),
        ({1: spread(1.3), 8: spread(1.1)}, SweepWord.EAGLE3_DOMINATES, ()),
        ({1: spread(1.3), 8: spread(0.7)}, SweepWord.EAGLE3_WINS_UP_TO, ()),
        ({1: spread(0.7), 8: spread(1.3)}, SweepWord.INCONCLUSIVE, ()),  # the wrong way round
        ({1: spread(1.3), 8: spread(1.0)}, SweepWord.INCONCLUSIVE, (8,)),
        ({1: spread(1.3), 8: spread(1.0, sd=0.1)}, SweepWord.INCONCLUSIVE, (8,)),
    ],
)
def test_an_arm_dominates_only_when_every_level_says_so(
    ratios: dict[int, list[float]], word: SweepWord, undecided: tuple[int, ...]
) -> None:
    (arm,) = judged({"eagle3_k1": ratios}, build_spec(arms=ONE_ARM)).arms
    assert arm.word is word
    assert arm.undecided == undecided
    assert "eagle3_k1" in arm.sentence
    assert arm.sentence.endswith(".")


def test_an_imported_capture_gets_numbers_and_no_word() -> None:
    section = judged({"eagle3_k1": {1: spread(1.3), 8: spread(1.3)}}, build_spec(arms=ONE_ARM), origin=Origin.IMPORTED)
    for one in section.comparisons:
        assert one.comparison.ratio.interval is not None
        assert one.word is SpeedWord.INCONCLUSIVE
        assert one.reason == "an imported capture supports no word about speed"
    assert {arm.word for arm in section.arms} == {SweepWord.INCONCLUSIVE}


def test_what_kept_cells_out_is_said() -> None:
    everything = frozenset(range(1000))
    (one,) = judged({"eagle3_k1": {8: spread(1.3)}}, build_spec(arms=ONE_ARM), invalid=everything).comparisons
    assert one.word is SpeedWord.INCONCLUSIVE
    assert one.reason == "no block has both cells; 10 cells left out (retraction)"


@pytest.mark.parametrize(("ratio", "tolerable"), [(0.97, True), (0.90, False)])
def test_a_tolerated_loss_is_told_from_one_that_is_not(ratio: float, tolerable: bool) -> None:
    spec = build_spec(arms=ONE_ARM, decision={"max_slowdown": 0.05})
    assert judged({"eagle3_k1": {8: spread(ratio)}}, spec).comparisons[0].tolerable is tolerable
    unasked = judged({"eagle3_k1": {8: spread(ratio)}}, build_spec(arms=ONE_ARM))
    assert unasked.comparisons[0].tolerable is None


CROSSING = {"eagle3_k1": {1: spread(1.4), 4: spread(1.0), 16: spread(0.7)}}


@pytest.mark.parametrize(("truth", "covered"), [(4.0, True), (15.0, False), (None, False)])
def test_the_truth_of_a_simulated_world_stands_beside_the_estimate(truth: float | None, covered: bool) -> None:
    host: dict[str, object] = {
        "simulated_truth": {
            "throughput": {"baseline": {"1": 100.0, "7": 1.0}, "eagle3_k1": {"1": 140.0}},
            "crossover": {"eagle3_k1": truth},
        }
    }
    section = judged(CROSSING, build_spec(arms=ONE_ARM), origin=Origin.SIMULATED, host=host)
    (crossing,) = section.crossovers
    assert (crossing.truth_known, crossing.truth, crossing.covered) == (True, truth, covered)
    assert [(t.arm, t.concurrency, t.tok_s) for t in section.truth] == [("baseline", 1, 100), ("eagle3_k1", 1, 140)]


def test_a_world_without_a_crossover_is_covered_when_none_is_found() -> None:
    host: dict[str, object] = {"simulated_truth": {"throughput": {}, "crossover": {"eagle3_k1": None}}}
    ratios = {"eagle3_k1": {1: spread(0.9), 8: spread(0.5)}}
    (crossing,) = judged(ratios, build_spec(arms=ONE_ARM), origin=Origin.SIMULATED, host=host).crossovers
    assert (crossing.truth, crossing.covered) == (None, True)


def test_a_set_that_excludes_nothing_covers_nothing() -> None:
    host: dict[str, object] = {"simulated_truth": {"throughput": {}, "crossover": {"eagle3_k1": 4.0}}}
    ratios = {"eagle3_k1": {1: [1.4], 16: [0.7]}}
    (crossing,) = judged(ratios, build_spec(arms=ONE_ARM), origin=Origin.SIMULATED, host=host).crossovers
    assert (crossing.truth_known, crossing.covered) == (True, None)


def test_a_measured_run_has_no_truth_even_if_somebody_wrote_one() -> None:
    host: dict[str, object] = {"simulated_truth": {"throughput": {}, "crossover": {"eagle3_k1": 3.0}}}
    (crossing,) = judged(CROSSING, build_spec(arms=ONE_ARM), host=host).crossovers
    assert (crossing.truth_known, crossing.truth, crossing.covered) == (False, None, None)


@given(
    ratio=st.floats(0.5, 2.0),
    sd=st.floats(0.0005, 0.1),
    blocks=st.integers(1, 8),
)
def test_a_word_never_contradicts_its_interval(ratio: float, sd: float, blocks: int) -> None:
    (one,) = judged({"eagle3_k1": {8: spread(ratio, sd=sd, blocks=blocks)}}, build_spec(arms=ONE_ARM)).comparisons
    interval = one.comparison.ratio.interval
    match one.word:
        case SpeedWord.FASTER:
            assert interval is not None
            assert interval.lo > 1.02 * (1 - 1e-9)
        case SpeedWord.SLOWER:
            assert interval is not None
            assert interval.hi < 0.98 * (1 + 1e-9)
        case SpeedWord.EQUIVALENT:
            assert interval is not None
            assert 0.98 * (1 - 1e-9) < interval.lo <= interval.hi < 1.02 * (1 + 1e-9)
        case SpeedWord.INCONCLUSIVE:
            assert interval is None or (interval.lo < 1.02 and interval.hi > 0.98)
