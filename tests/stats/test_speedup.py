"""Ratios, words, crossover and saturation, with the earlier studies' numbers."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kit.stats import (
    CrossoverKind,
    RatioCurve,
    SpeedWord,
    StatsError,
    SweepWord,
    crossover,
    crossover_estimate,
    crossover_set,
    fit_usl,
    level_tests,
    log_ratio_ci,
    peak_ratio,
    ratio_estimate,
    saturation,
    speed_words,
    sweep_verdict,
    usl,
)
from kit.stats.arrays import FloatArray

LEVELS = [1, 2, 4, 8, 16, 32, 64, 128, 250]


def blocks_of(curve: FloatArray, *, blocks: int, seed: int, launch_sd: float = 0.03) -> FloatArray:
    """Throughputs (blocks, levels): a launch effect of 3 % and 1 % inside a launch."""
    rng = np.random.default_rng(seed)
    launch = rng.normal(0, launch_sd, (blocks, 1))
    return np.asarray(curve * np.exp(launch + rng.normal(0, 0.01, (blocks, len(curve)))), float)


def study_b(arm: str) -> FloatArray:
    """X(C) of the earlier study B from its two published numbers per arm, kappa = 0."""
    single, plateau = {"baseline": (92.7, 773.0), "eagle3": (80.9, 354.0)}[arm]
    return np.array([usl(C, lam=single, sigma=single / plateau, kappa=0.0) for C in LEVELS])


def sweep(ratio: list[float], *, blocks: int = 5, seed: int = 1) -> RatioCurve:
    baseline = np.full(len(ratio), 100.0)
    return RatioCurve.of(
        LEVELS[: len(ratio)],
        arm=blocks_of(baseline * ratio, blocks=blocks, seed=seed),
        baseline=blocks_of(baseline, blocks=blocks, seed=seed + 1),
    )


def test_study_b_says_that_the_baseline_dominates_at_every_concurrency() -> None:
    curve = RatioCurve.of(
        LEVELS,
        arm=blocks_of(study_b("eagle3"), blocks=5, seed=3),
        baseline=blocks_of(study_b("baseline"), blocks=5, seed=4),
    )
    verdict = sweep_verdict(curve)
    assert verdict.word is SweepWord.BASELINE_DOMINATES
    assert verdict.crossover.kind is CrossoverKind.NONE_IN_RANGE
    assert verdict.crossover.confidence.pieces == ()
    assert set(speed_words(level_tests(curve, noise_threshold=0.01))) == {SpeedWord.SLOWER}


def test_study_b_implies_the_published_ratios() -> None:
    ratio = dict(zip(LEVELS, study_b("eagle3") / study_b("baseline"), strict=True))
    assert [round(float(ratio[C]), 3) for C in (1, 4, 8, 32, 128)] == [0.873, 0.704, 0.617, 0.509, 0.472]
    assert crossover(LEVELS, ratio=list(ratio.values())) is None


def test_a_crossing_sweep_wins_up_to_a_bracketed_crossover() -> None:
    curve = sweep([1.6, 1.3, 1.05, 0.8, 0.7, 0.6])
    verdict = sweep_verdict(curve)
    assert verdict.word is SweepWord.EAGLE3_WINS_UP_TO
    interval = verdict.crossover.at.interval
    assert verdict.crossover.kind is CrossoverKind.FOUND and interval is not None
    assert interval.contains(4.6) and interval.lo > 2 and interval.hi < 8


def test_a_faster_arm_dominates_and_a_tie_is_inconclusive() -> None:
    assert sweep_verdict(sweep([1.3, 1.3, 1.3])).word is SweepWord.EAGLE3_DOMINATES
    tie = sweep_verdict(sweep([1.0, 0.999, 0.5]))
    assert tie.word is SweepWord.INCONCLUSIVE
    assert tie.undecided == (1.0, 2.0)


def test_fewer_than_three_blocks_carry_no_interval_and_no_word() -> None:
    verdict = sweep_verdict(sweep([0.5, 0.5, 0.5], blocks=2))
    assert verdict.word is SweepWord.INCONCLUSIVE
    assert verdict.undecided == (1.0, 2.0, 4.0)
    assert verdict.tests[0].ratio.interval is None
    assert verdict.tests[0].ratio.reason == "2 of the 3 blocks that an interval needs"
    assert verdict.crossover.confidence.open_below and verdict.crossover.confidence.open_above


def test_a_missing_cell_costs_its_level_only() -> None:
    curve = sweep([1.3, 1.3, 1.3])
    holed = curve.log_ratio.copy()
    holed[:3, 1] = np.nan
    tests = level_tests(RatioCurve(curve.concurrency, holed))
    assert [test.ratio.n for test in tests] == [5, 2, 5]
    assert tests[1].p_faster == 1.0 and tests[0].p_faster < 0.05


def test_the_noise_threshold_withholds_words_about_small_differences() -> None:
    curve = sweep([1.03], blocks=8, seed=7)
    small = level_tests(RatioCurve(curve.concurrency, np.full((8, 1), 0.02) + 0.001 * np.arange(8)[:, None]))
    assert speed_words(small) == (SpeedWord.FASTER,)
    tight = RatioCurve((1.0,), small_log := np.linspace(-0.004, 0.004, 8)[:, None])
    assert speed_words(level_tests(tight, noise_threshold=0.02)) == (SpeedWord.EQUIVALENT,)
    assert speed_words(level_tests(RatioCurve((1.0,), small_log + 0.02), noise_threshold=0.02)) == (
        SpeedWord.INCONCLUSIVE,
    )


def test_words_are_adjusted_over_every_arm_and_level_that_is_printed() -> None:
    borderline = level_tests(RatioCurve((1.0,), np.array([[0.01], [0.05], [0.03], [0.02]])))
    assert borderline[0].p_faster < 0.05
    assert speed_words(borderline) == (SpeedWord.FASTER,)
    assert speed_words(borderline * 20)[0] is SpeedWord.INCONCLUSIVE


def column(mean: float, *, p_above: float) -> FloatArray:
    """Three blocks whose one-sided t-test p of a mean above 0 is as stated."""
    spread = mean * math.sqrt(3) / float(stats.t.isf(p_above, 2))
    return mean + spread * np.array([-1.0, 0.0, 1.0])


def test_the_p_values_are_those_of_the_two_sided_t_test() -> None:
    d = np.array([0.05, 0.01, 0.04, 0.03])
    test = level_tests(RatioCurve((1.0,), d[:, None]))[0]
    assert test.p_faster == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue)
    assert test.p_slower == 1.0
    shifted = level_tests(RatioCurve((1.0,), d[:, None]), noise_threshold=0.02)[0]
    assert shifted.p_faster == pytest.approx(stats.ttest_1samp(d, math.log(1.02)).pvalue)


@pytest.mark.parametrize(("sign", "dominates"), [(1, SweepWord.EAGLE3_DOMINATES), (-1, SweepWord.BASELINE_DOMINATES)])
def test_dominance_is_one_sided_at_alpha_on_every_level(sign: int, dominates: SweepWord) -> None:
    def word(p_above: float) -> SweepWord:
        levels = [column(0.1, p_above=0.001), column(0.05, p_above=p_above)]
        return sweep_verdict(RatioCurve((1.0, 2.0), sign * np.stack(levels, axis=1))).word

    assert word(0.045) is dominates
    assert word(0.055) is SweepWord.INCONCLUSIVE


def test_the_confidence_set_covers_a_true_crossover_at_its_level() -> None:
    truth = 4.4
    ratio = [math.exp(0.25 * math.log(truth / C)) for C in LEVELS]
    hits = 0
    for seed in range(200):
        confidence = crossover_set(sweep(ratio, seed=1000 + 2 * seed))
        hits += any(lo <= truth <= hi for lo, hi in confidence.pieces)
    assert 0.90 <= hits / 200 <= 0.99


def test_a_set_that_reaches_the_end_of_the_sweep_is_open_there() -> None:
    found = crossover_estimate(sweep([1.01, 0.9, 0.8]))
    assert found.kind is CrossoverKind.INCONCLUSIVE
    assert found.confidence.open_below and not found.confidence.open_above


@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=6), st.randoms(use_true_random=False))
def test_block_order_changes_nothing(ratios: list[float], random: Random) -> None:
    base = np.full(len(ratios), 100.0)
    shuffled = list(ratios)
    random.shuffle(shuffled)
    first, second = (ratio_estimate(base * r, b=base) for r in (ratios, shuffled))
    assert first.point == pytest.approx(second.point)
    assert first.interval is not None and second.interval is not None
    assert first.interval.lo == pytest.approx(second.interval.lo)


def test_no_blocks_give_a_reason_and_one_block_a_bare_ratio() -> None:
    assert ratio_estimate([], b=[]).reason == "no block has both cells"
    assert log_ratio_ci([], b=[]) == {"ratio": None, "lo": None, "hi": None}
    assert log_ratio_ci([2.0], b=[1.0]) == {"ratio": pytest.approx(2.0), "lo": None, "hi": None}
    with pytest.raises(StatsError, match="not positive"):
        ratio_estimate([0.0], b=[1.0])


@given(st.floats(20, 500), st.floats(0.01, 0.5), st.sampled_from([0.0, 5e-5, 2e-4, 1e-3]))
def test_usl_parameters_are_recovered_from_noise_free_curves(lam: float, sigma: float, kappa: float) -> None:
    fit = fit_usl(LEVELS, X=[usl(C, lam=lam, sigma=sigma, kappa=kappa) for C in LEVELS])
    assert fit.lam == pytest.approx(lam, rel=1e-4) and fit.sigma == pytest.approx(sigma, rel=1e-3)
    assert fit.kappa == pytest.approx(kappa, rel=1e-3, abs=1e-8)
    assert fit.kappa_includes_zero is (kappa == 0.0)


def test_saturation_of_study_b_has_the_published_knee_and_half_the_plateau() -> None:
    base = saturation(LEVELS, X=blocks_of(study_b("baseline"), blocks=5, seed=11))
    eagle = saturation(LEVELS, X=blocks_of(study_b("eagle3"), blocks=5, seed=12))
    assert base.knee.point == pytest.approx(8.3, rel=0.05)
    assert eagle.knee.point == pytest.approx(4.4, rel=0.05)
    assert base.x_max.interval is not None and base.x_max.interval.contains(773)
    assert eagle.c_sat_point in (64, 128) and base.c_sat_point in (128, 250)
    assert eagle.c_sat in (128, 250) and eagle.saturated
    peaks = peak_ratio(
        LEVELS,
        arm=blocks_of(study_b("eagle3"), blocks=5, seed=12),
        baseline=blocks_of(study_b("baseline"), blocks=5, seed=11),
    )
    assert peaks.ratio.interval is not None and peaks.ratio.interval.contains(354 / 773)
    assert len(peaks.arm) == len(peaks.baseline) == 5
    assert "levels" in (peak_ratio([1, 8], arm=[[1.0, 2.0]], baseline=[[1.0, 2.0]]).ratio.reason or "")


def test_a_sweep_that_stops_early_is_not_saturated() -> None:
    levels = [1, 2, 3, 4, 6, 8]
    rising = saturation(levels, X=[[usl(C, lam=92.7, sigma=0.12, kappa=0.0) for C in levels]])
    assert not rising.saturated and rising.c_sat is None
    assert rising.x_max.point == pytest.approx(772.5, rel=1e-3)
    proportional = saturation(levels, X=[[50.0 * C for C in levels]])
    assert proportional.x_max.point is None and "no maximum" in (proportional.x_max.reason or "")
    assert "6" in (saturation([1, 2], X=[[1.0, 2.0]]).x_max.reason or "")
