"""Round-boundary selection: nesting and conversion are exact, and v1c is silent where nothing moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import Resampling, conversion_residuals, convert, mixture, pooled, walk, walk_texts
from kit.stats.arrays import IntArray
from tests.stats.worlds import Shifted, capture, easy_and_hard_texts, histograms, run_lengths

bits = st.lists(st.integers(0, 1), min_size=1, max_size=60).map(lambda b: [*b, 0])
nested_depths = st.sampled_from([(3, 1), (7, 3), (7, 1), (5, 1), (5, 2), (8, 2)])


def runs_of(text: list[int]) -> IntArray:
    return run_lengths(np.array([text]))


@given(bits, nested_depths)
def test_round_starts_nest(text: list[int], depths: tuple[int, int]) -> None:
    deep, shallow = depths
    runs = runs_of(text)[0].tolist()
    starts = [{start for start, _ in walk(runs, K=K)} for K in depths]
    assert starts[0] <= starts[1], (deep, shallow)


@given(bits, nested_depths)
def test_the_conversion_is_exact_on_texts_that_end_in_a_rejection(text: list[int], depths: tuple[int, int]) -> None:
    deep, shallow = depths
    runs = runs_of(text)[0].tolist()
    measured = {K: [j for _, j in walk(runs, K=K)] for K in depths}
    curves = {K: [float(np.mean(np.array(j) >= k)) for k in range(1, K + 1)] for K, j in measured.items()}
    converted = convert(curves[deep], K_from=deep, K_to=shallow)
    assert converted["S"] == pytest.approx(curves[shallow])
    assert converted["rounds_ratio"] == pytest.approx(len(measured[shallow]) / len(measured[deep]))


def test_the_mixture_formula_predicts_what_long_regimes_show() -> None:
    rng = np.random.default_rng(6)
    easy = np.repeat(rng.random((300, 1)) < 0.3, 2000, axis=1)
    runs = run_lengths((rng.random(easy.shape) < np.where(easy, 0.9, 0.3)).astype(np.int64))
    share = float(easy.mean())
    for K in (1, 7):
        predicted = mixture([share, 1 - share], p=[0.9, 0.3], K=K)["S"]
        measured = pooled(histograms(runs, K=K).tolist(), K=K)
        assert measured == pytest.approx(predicted, abs=0.004)


def test_v1c_is_silent_in_an_invariant_world_whose_curve_moves() -> None:
    runs, classes = easy_and_hard_texts(256, seed=7)
    found = conversion_residuals(
        {K: histograms(runs, K=K) for K in (1, 3, 5, 7)}, resampling=Resampling(seed=1, draws=500), strata=classes
    )
    assert {(r.K_from, r.K_to) for r in found} == {(7, 3), (7, 1), (5, 1), (3, 1)}
    first = next(r for r in found if (r.K_from, r.K_to) == (7, 1))
    assert first.raw_difference.interval is not None and first.raw_difference.interval.lo > 0.02
    for r in found:
        assert r.residual.point == pytest.approx(0.0, abs=0.003)


def test_v1c_sees_a_draft_that_is_worse_at_one_depth() -> None:
    runs, classes = easy_and_hard_texts(256, seed=8)
    worse = Shifted(drop=0.2, seed=1).capture(runs, K=1).histograms(prompts=256, K=1)
    found = conversion_residuals(
        {1: worse, 7: histograms(runs, K=7)}, resampling=Resampling(seed=1, draws=500), strata=classes
    )
    assert found[0].residual.interval is not None and found[0].residual.interval.hi < -0.03


def test_a_walk_stops_unresolved_on_an_unknown_run() -> None:
    runs = np.array([[2, 1, 0, -1, 0, 0], [0, 0, 0, 0, 0, 0]])
    walks = walk_texts(runs, K=2, first=0)
    assert walks.resolved.tolist() == [False, True]
    assert walks.start[walks.text == 0].tolist() == [0]
    assert len(walks.start[walks.text == 1]) == 6


def test_depths_that_were_not_captured_have_no_residual() -> None:
    empty = {7: np.zeros((3, 8), np.int64), 1: np.ones((3, 2), np.int64)}
    assert conversion_residuals(empty, resampling=Resampling(seed=1)) == ()


def test_a_capture_of_texts_covers_every_token() -> None:
    runs, _ = easy_and_hard_texts(8, seed=9)
    rounds = capture(runs, K=3)
    last = rounds.starts() + rounds.accepted + 1
    assert (np.array([last[rounds.prompt == i].max() for i in range(8)]) >= runs.shape[1]).all()
