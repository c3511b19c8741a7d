"""Acceptance at fixed K: curves, intervals and the finishing round."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kit.stats import (
    Convention,
    Resampling,
    StatsError,
    convention,
    detect_convention,
    histogram_matrix,
    last_round_bounds,
    macro,
    mean_interval,
    overshoot,
    paired_ratio_diff,
    pooled,
    ratio_bootstrap,
    ratio_interval,
    ratio_se,
    share_interval,
    survival,
    survival_curve,
)
from kit.stats.arrays import IntArray
from tests.stats.worlds import easy_and_hard_texts, histograms

captures = arrays.arrays(np.int64, st.tuples(st.integers(2, 8), st.just(5)), elements=st.integers(0, 20)).filter(
    lambda h: bool(h.any())
)


@given(captures)
def test_a_curve_falls_and_adds_up_to_the_tokens_per_round(h: IntArray) -> None:
    curve = survival_curve(h)
    points = [estimate.point for estimate in curve.survival]
    assert points == sorted(points, key=lambda p: -(p or 0))
    assert curve.tokens_per_round.point == pytest.approx(1 + sum(p or 0 for p in points))
    assert points == pytest.approx(pooled(h.tolist(), K=4))
    assert [e.point for e in curve.macro] == pytest.approx(macro(h.tolist(), K=4))
    product = np.cumprod([1 if e.point is None else e.point for e in curve.conditional])
    assert [p for p, a in zip(points, curve.conditional, strict=True) if a.point is not None] == pytest.approx(
        [c for c, a in zip(product, curve.conditional, strict=True) if a.point is not None]
    )


@given(captures, st.randoms(use_true_random=False))
def test_permuting_requests_changes_nothing(h: IntArray, random: Random) -> None:
    order = list(range(len(h)))
    random.shuffle(order)
    strata = np.arange(len(h)) % 2
    first, second = survival_curve(h, strata=strata), survival_curve(h[order], strata=strata[order])
    for a, b in zip(first.survival, second.survival, strict=True):
        assert a.point == pytest.approx(b.point)
        assert (a.interval is None) is (b.interval is None)
        if a.interval and b.interval:
            assert a.interval.lo == pytest.approx(b.interval.lo)
    draws = Resampling(seed=3, draws=50)
    rounds, hits = h.sum(axis=1), h[:, 1:].sum(axis=1)
    assert ratio_bootstrap(hits, n=rounds, strata=strata, resampling=draws) == ratio_bootstrap(
        hits[order], n=rounds[order], strata=strata[order], resampling=draws
    )


def test_mass_beyond_the_depth_is_refused_with_the_depth() -> None:
    with pytest.raises(StatsError, match="beyond K=2"):
        survival([1, 1, 1, 1], K=2)
    with pytest.raises(StatsError, match="beyond K=1"):
        histogram_matrix([[1], [0, 0, 3]], K=1)
    with pytest.raises(StatsError, match="negative"):
        survival([3, -1], K=1)
    assert histogram_matrix([[1, 2, 0, 0]], K=1).tolist() == [[1, 2]]


def test_no_rounds_give_reasons_and_never_a_number() -> None:
    empty = survival_curve(np.zeros((3, 4), np.int64))
    estimates = (*empty.survival, *empty.conditional, *empty.macro, empty.tokens_per_round)
    assert {estimate.point for estimate in estimates} == {None}
    assert {estimate.reason for estimate in estimates} == {"nothing was counted"}
    assert empty.prompts == 0 and empty.rounds == 0
    assert pooled([], K=3) is None and macro([[], []], K=3) is None and last_round_bounds([1], K=2) is None
    assert ratio_se([], n=[]) == {"p": None, "se": None, "clusters": 0}
    assert paired_ratio_diff([0], na=[0], xb=[1], nb=[2]) == {"diff": None, "se": None}
    assert ratio_bootstrap([0, 0], n=[0, 0], resampling=Resampling(seed=1)).reason == "nothing was counted"


def test_a_lone_prompt_in_a_stratum_has_no_interval() -> None:
    estimate = ratio_interval([3, 4, 5], n=[10, 10, 10], strata=[0, 0, 1])
    assert estimate.point == pytest.approx(0.4) and estimate.interval is None
    assert "fewer than two" in (estimate.reason or "")


def test_shares_stay_between_0_and_1_and_agreement_is_not_certainty() -> None:
    dead = survival_curve(np.array([[50, 0, 0]] * 24))
    assert dead.survival[0].point == 0.0 and dead.survival[0].interval is not None
    assert dead.survival[0].interval.hi == pytest.approx(1 - 0.025 ** (1 / 24))
    perfect = survival_curve(np.array([[0, 0, 50]] * 24)).survival[1].interval
    assert perfect is not None and perfect.hi == 1.0
    assert perfect.lo == pytest.approx(0.025 ** (1 / 24))
    rare = survival_curve(np.array([[40, 0, 0]] * 5 + [[30, 0, 1]])).survival[1].interval
    assert rare is not None and 0.0 < rare.lo < 1 / 216 < rare.hi


def test_linearised_and_bootstrap_errors_agree_within_ten_percent() -> None:
    runs, classes = easy_and_hard_texts(192, seed=5)
    h = histograms(runs, K=7)
    hits, rounds = h[:, 1:].sum(axis=1), h.sum(axis=1)
    linear = ratio_se(hits, n=rounds, strata=classes)["se"]
    drawn = ratio_bootstrap(hits, n=rounds, strata=classes, resampling=Resampling(seed=2)).interval
    assert linear is not None and drawn is not None
    assert (drawn.hi - drawn.lo) / (2 * 1.96) == pytest.approx(linear, rel=0.10)


def test_intervals_over_prompts_cover_where_intervals_over_rounds_do_not() -> None:
    truth = pooled(histograms(easy_and_hard_texts(6000, seed=99)[0], K=7).tolist(), K=7)
    assert truth is not None
    covered = naive = 0
    for seed in range(100):
        runs, classes = easy_and_hard_texts(48, seed=seed)
        h = histograms(runs, K=7)
        estimate = survival_curve(h, strata=classes).survival[0]
        assert estimate.interval is not None and estimate.point is not None
        covered += estimate.interval.contains(truth[0])
        half = 1.96 * np.sqrt(estimate.point * (1 - estimate.point) / h.sum())
        naive += abs(estimate.point - truth[0]) <= half
    assert 0.90 <= covered / 100 <= 0.99
    assert naive / 100 < 0.85


def test_the_convention_needs_fifty_deep_requests_to_be_called_truncated() -> None:
    assert detect_convention([(0, 3)] * 49) is Convention.UNKNOWN
    assert detect_convention([(0, 3)] * 50) is Convention.TRUNCATED
    assert detect_convention([(0, 1)] * 500) is Convention.UNKNOWN
    assert detect_convention([(0, 3)] * 99 + [(1, 3)]) is Convention.UNTRUNCATED
    assert detect_convention([(-1, 3)]) is Convention.INCONSISTENT
    assert convention([]) == "truncated_or_aligned"


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4), st.integers(0, 3))
def test_overshoot_is_the_tokens_the_histogram_has_too_many(h: list[int], cut: int) -> None:
    emitted = 1 + sum((j + 1) * count for j, count in enumerate(h))
    found = overshoot(h, completion_tokens=emitted - cut, K=3)
    assert found == {"overshoot": cut, "status": "exact" if cut == 0 else "final_round_cut"}
    assert overshoot(h, completion_tokens=emitted + 1, K=3)["status"] == "inconsistent"


def test_the_macro_mean_weighs_requests_alike() -> None:
    estimate = mean_interval([0.0, 1.0, 0.5, 0.5])
    assert estimate.point == 0.5 and estimate.n == 4
    assert estimate.interval is not None and estimate.interval.contains(0.5)


@given(
    counts=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=2, max_size=6),
    level=st.sampled_from([0.8, 0.95, 0.99]),
)
def test_the_interval_of_a_share_holds_the_share_and_stays_between_0_and_1(
    counts: list[tuple[int, int]], level: float
) -> None:
    kept = [min(x, n) for x, n in counts]
    share = share_interval(kept, n=[n for _, n in counts], level=level)
    assert share.point is not None and share.interval is not None
    assert 0.0 <= share.interval.lo <= share.point <= share.interval.hi <= 1.0


def test_random_groups_of_many_prompts_give_the_spread_of_the_prompts_themselves() -> None:
    rng = np.random.default_rng(8)
    rounds = rng.integers(10, 30, 20_000)
    kept = rng.binomial(rounds, rng.beta(2, 3, 20_000))
    exact = ratio_se(kept, n=rounds)["se"]
    drawn = ratio_bootstrap(kept, n=rounds, resampling=Resampling(seed=3)).interval
    assert exact is not None and drawn is not None
    assert (drawn.hi - drawn.lo) / (2 * 1.96) == pytest.approx(exact, rel=0.1)
