"""Spread between requests, and whether a request's curve is its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    Halves,
    Resampling,
    Rounds,
    StatsError,
    class_ratio,
    halves,
    icc1,
    ownership,
    spearman_brown,
    split_half,
    spread,
    spread_within,
)
from kit.stats.arrays import IntArray
from tests.stats.worlds import TEXT, capture, easy_and_hard_texts, histograms, homogeneous_texts, run_lengths

DRAWS = Resampling(seed=2, draws=400)


def parts(runs: IntArray, *, K: int) -> Halves:
    return halves(capture(runs, K=K), text_tokens=np.full(len(runs), TEXT), prompts=len(runs))


def personal_texts(prompts: int, *, seed: int) -> IntArray:
    """Each prompt has its own acceptance rate, the same throughout its text."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.1, 0.9, (prompts, 1))
    return run_lengths((rng.random((prompts, TEXT)) < rate).astype(np.int64))


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=2, max_size=6))
def test_the_spread_of_histograms_is_the_icc_of_their_rounds(groups: list[list[int]]) -> None:
    expected = icc1(groups)
    h = np.array([np.bincount(group, minlength=4) for group in groups])
    found = spread(h, resampling=Resampling(seed=1, draws=5))
    if expected["icc"] is None or expected["var_between"] is None:
        assert found.icc.point is None and found.icc.reason
        return
    assert found.icc.point == pytest.approx(expected["icc"], abs=1e-9)
    # Compared as variances: a root would make 3e-9 of the rounding dust at 0.
    assert found.sd_between.point is not None
    assert found.sd_between.point**2 == pytest.approx(expected["var_between"], abs=1e-9)


def test_identical_requests_have_no_spread_although_their_means_differ() -> None:
    runs = homogeneous_texts(192, seed=3, rate=0.4)
    h = histograms(runs, K=7)
    found = spread(h, resampling=DRAWS)
    means = (h @ np.arange(8)) / h.sum(axis=1)
    assert found.icc.point is not None and found.icc.point < 0.01
    assert found.sd_between.point is not None and found.sd_between.point < means.std() / 2


def test_classes_differ_by_a_ratio_with_an_interval() -> None:
    runs, classes = easy_and_hard_texts(192, seed=4)
    ratio = class_ratio(histograms(runs, K=7), classes=classes, over=0, under=1, resampling=DRAWS)
    shallow = class_ratio(histograms(runs, K=1), classes=classes, over=0, under=1, resampling=DRAWS)
    assert ratio.point is not None and shallow.point is not None
    assert ratio.interval is not None and ratio.interval.lo > 1
    # Depth censors the easy class at 1, so the ratio shrinks.
    assert shallow.point < ratio.point
    none = class_ratio(np.zeros((2, 3), np.int64), classes=[0, 1], over=0, under=1, resampling=DRAWS)
    assert none.point is None and none.reason == "a class has no rounds or accepts nothing"


def test_personal_curves_belong_to_their_requests() -> None:
    runs = personal_texts(192, seed=5)
    found = ownership(parts(runs, K=1), b=parts(runs, K=7), resampling=DRAWS)
    assert found.belongs_to_request
    assert found.across.point is not None and found.across.point > 0.9
    assert found.disattenuated.point == pytest.approx(1.0, abs=0.05)


def test_regimes_in_time_and_identical_requests_do_not() -> None:
    identical = homogeneous_texts(192, seed=6, rate=0.5)
    found = ownership(parts(identical, K=1), b=parts(identical, K=7), resampling=DRAWS)
    assert not found.belongs_to_request
    assert found.across.interval is not None and found.across.interval.contains(0.0)
    # The same text at two depths correlates all the same: that is why halves are disjoint.
    same_text = np.corrcoef(parts(identical, K=1).first, parts(identical, K=7).first)[0, 1]
    assert same_text > 0.5


def test_a_correlation_that_is_only_the_class_vanishes_within_class() -> None:
    rng = np.random.default_rng(7)
    classes = np.arange(192) % 2
    bits = rng.random((192, TEXT)) < np.where(classes == 0, 0.8, 0.2)[:, None]
    runs = run_lengths(bits.astype(np.int64))
    found = ownership(parts(runs, K=1), b=parts(runs, K=7), resampling=DRAWS, strata=classes)
    assert found.across.point is not None and found.across.point > 0.9
    assert found.across_within_class.interval is not None
    assert found.across_within_class.interval.lo < 0.2


def test_a_round_belongs_to_the_half_its_start_is_in() -> None:
    rounds = Rounds.of([0] * 5, active=3, accepted=[1, 1, 0, 0, 3])
    # Starts 1, 3, 5, 6, 7 of a text of 10 tokens: the middle belongs to the first half.
    both = halves(rounds, text_tokens=[10], prompts=1)
    assert (both.first.tolist(), both.second.tolist()) == ([2 / 3], [1 / 2])


def test_halves_are_of_the_text_and_may_be_empty() -> None:
    runs, _ = easy_and_hard_texts(6, seed=8)
    both = halves(capture(runs, K=3), text_tokens=[TEXT] * 5 + [10 * TEXT], prompts=6)
    assert np.isnan(both.second[5]) and not np.isnan(both.second[:5]).any()
    constant = Halves(np.full(5, 0.5), np.full(5, 0.5))
    estimate = split_half(constant, resampling=Resampling(seed=1, draws=10))
    assert estimate.point is None and estimate.reason == "a half does not vary between requests"
    empty = split_half(Halves(np.full(3, np.nan), np.full(3, np.nan)), resampling=Resampling(seed=1, draws=10))
    assert empty.point is None and empty.n == 0


def test_spearman_brown_refuses_what_is_no_correlation() -> None:
    assert spearman_brown(1.0) == 1.0 and spearman_brown(0.0) == 0.0
    for r in (-1.0, 1.5, float("nan")):
        with pytest.raises(StatsError, match="correlation"):
            spearman_brown(r)
    assert icc1([])["icc"] is None and icc1([[1, 2]])["icc"] is None and icc1([[1], [2]])["icc"] is None


def test_the_spread_in_a_batch_is_that_of_its_requests_and_not_of_their_noise() -> None:
    rng = np.random.default_rng(12)
    alike = rng.multinomial(60, [0.5, 0.3, 0.2], 400)
    easy, hard = rng.multinomial(60, [0.1, 0.2, 0.7], 200), rng.multinomial(60, [0.7, 0.2, 0.1], 200)
    mixed = np.stack([easy, hard], axis=1).reshape(400, 3)
    batch, draws = np.arange(400) // 4, Resampling(seed=1, draws=200)
    none, some = (spread_within(h, batch=batch, resampling=draws) for h in (alike, mixed))
    assert none.point is not None and none.point < 0.1
    assert some.interval is not None and some.interval.lo > 0.6
    assert some.n == 100
    assert spread_within(alike, batch=np.arange(400), resampling=draws).point is None
