"""The oracle: policies, cross-fitting that does not credit noise, and the cost model's refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    IterationCost,
    OracleRequests,
    Resampling,
    StatsError,
    batch_folds,
    contiguous_halves,
    fit_iteration_cost,
    harmonic_throughput,
    iteration_times,
    oracle_gaps,
    ragged_depths,
)
from kit.stats.arrays import FloatArray, IntArray
from tests.stats.worlds import capture, cost_cells, homogeneous_texts, run_lengths

KS = (1, 3, 5, 7)
DRAWS = Resampling(seed=5, draws=300)


def measured_cost(noise: float = 0.0) -> IterationCost:
    n, K = (axis.ravel().astype(float) for axis in np.meshgrid([1, 8, 32], [0, 1, 3, 5, 7]))
    wobble = np.exp(np.random.default_rng(1).normal(0, noise, len(n)))
    return fit_iteration_cost(n, K=K, seconds=cost_cells(n, K) * wobble)


def requests_of(runs: IntArray, *, batch: IntArray | None = None, size: int = 8) -> OracleRequests:
    rounds = capture(runs, K=7)
    first, second = contiguous_halves(rounds.prompt, accepted=rounds.accepted, prompts=len(runs), K=7)
    where = np.arange(len(runs)) // size if batch is None else batch
    return OracleRequests(where, np.arange(len(runs)), first, second)


def test_a_homogeneous_world_has_nothing_to_gain_from_curves() -> None:
    n, K = (axis.ravel().astype(float) for axis in np.meshgrid([4, 8, 16], [1, 3, 5, 7]))
    cost = fit_iteration_cost(n, K=K, seconds=0.90 + 0.01 * n * (K + 1) + 0.04 * K)
    found = [
        oracle_gaps(
            requests_of(homogeneous_texts(384, seed=seed, rate=0.72, length=128)), Ks=KS, cost=cost, resampling=DRAWS
        )
        for seed in range(12)
    ]
    intervals = [gaps.curve_over_scalar.interval for gaps in found]
    assert sum(interval is not None and interval.contains(0.0) for interval in intervals) >= 10
    assert all(gaps.is_zero(gaps.curve_over_scalar) for gaps in found)
    # Deciding on noise costs a little, and is reported as it is.
    assert np.mean([gaps.ragged_over_curve.point or 0.0 for gaps in found]) == pytest.approx(-0.0057, abs=0.001)
    assert {(gaps.batches, gaps.uncovered) for gaps in found} == {(48, 0)}


def test_batches_of_different_texts_gain_from_adapting_and_requests_from_ragged_depths() -> None:
    rng = np.random.default_rng(3)
    rate = np.where(np.arange(384) // 8 % 3 == 0, 0.2, np.where(rng.random(384) < 0.5, 0.3, 0.95))
    runs = run_lengths((rng.random((384, 256)) < rate[:, None]).astype(np.int64))
    gaps = oracle_gaps(requests_of(runs), Ks=KS, cost=measured_cost(), resampling=DRAWS, time_se=[0.01] * 4)
    assert gaps.scalar_over_static.interval is not None and gaps.scalar_over_static.interval.lo > 0.0
    assert gaps.ragged_over_curve.interval is not None and gaps.ragged_over_curve.interval.lo > 0.01
    assert not gaps.is_zero(gaps.ragged_over_curve)


def test_policies_fitted_on_one_fold_are_scored_on_the_other_only() -> None:
    easy, hard = np.ones((1, 64), np.int64), np.zeros((1, 64), np.int64)
    runs = run_lengths(np.vstack([easy, hard]))
    cost = measured_cost()
    gaps = oracle_gaps(requests_of(runs, size=1), Ks=KS, cost=cost, resampling=DRAWS)
    t1, t7 = (float(cost_cells(np.array(1.0), np.array(K))) for K in (1.0, 7.0))
    # Trained on the other text the scalar picks the wrong end of the depths, the curve the right one.
    assert gaps.scalar_over_static.point == pytest.approx(0.0)
    assert gaps.curve_over_scalar.point == pytest.approx(((t7 / t1 - 1) + (4 * t1 / t7 - 1)) / 2, rel=0.02)


def test_the_order_of_requests_changes_no_gap() -> None:
    runs = homogeneous_texts(64, seed=4, rate=0.6, length=128)
    straight = requests_of(runs)
    order = np.random.default_rng(5).permutation(64)
    shuffled = OracleRequests(
        straight.batch[order], straight.prompt[order], straight.first[order], straight.second[order]
    )
    a, b = (oracle_gaps(r, Ks=KS, cost=measured_cost(), resampling=DRAWS) for r in (straight, shuffled))
    assert a.curve_over_scalar.point == pytest.approx(b.curve_over_scalar.point)
    assert a.ragged_over_curve.point == pytest.approx(b.ragged_over_curve.point)


def test_a_replay_that_repeats_the_deepest_curve_gives_the_gaps_of_the_curve() -> None:
    requests = requests_of(homogeneous_texts(64, seed=4, rate=0.6, length=128))
    replayed = tuple((_cut(requests.first, K), _cut(requests.second, K)) for K in KS)
    curve, replay = (
        oracle_gaps(r, Ks=KS, cost=measured_cost(), resampling=DRAWS)
        for r in (requests, replace(requests, replayed=replayed))
    )
    assert replay.curve_over_scalar.point == pytest.approx(curve.curve_over_scalar.point)
    assert replay.ragged_over_curve.point == pytest.approx(curve.ragged_over_curve.point)


def _cut(h: IntArray, K: int) -> IntArray:
    """What a capture at depth K would have counted, had its rounds begun where the deepest one's did."""
    return np.hstack([h[:, :K], h[:, K:].sum(axis=1, keepdims=True)])


def test_the_oracle_is_withheld_outside_the_measured_grid() -> None:
    runs = homogeneous_texts(128, seed=6, rate=0.6)
    gaps = oracle_gaps(requests_of(runs, size=64), Ks=KS, cost=measured_cost(), resampling=DRAWS)
    assert gaps.uncovered == 8 and gaps.curve_over_scalar.point is None
    assert "outside the measured cells" in (gaps.curve_over_scalar.reason or "")


def test_a_poor_cost_model_serves_measured_cells_only_and_no_ragged_level() -> None:
    cost = measured_cost(noise=0.2)
    assert not cost.interpolates
    times = iteration_times(cost, n=[8, 9], Ks=[1, 2])
    assert times.uncovered == 3 and times.seconds[0, 0] == cost.seconds[(cost.n == 8) & (cost.K == 1)]
    gaps = oracle_gaps(requests_of(homogeneous_texts(128, seed=7, rate=0.6)), Ks=KS, cost=cost, resampling=DRAWS)
    assert gaps.curve_over_scalar.point is not None
    assert gaps.ragged_over_curve.point is None and "left-out cell" in (gaps.ragged_over_curve.reason or "")


def test_the_cost_model_recovers_a_noise_free_grid_and_interpolates_inside_it() -> None:
    cost = measured_cost()
    assert cost.loo_error is not None and cost.loo_error < 1e-6
    inside = iteration_times(cost, n=[4, 16], Ks=[2, 6])
    assert inside.uncovered == 0
    assert inside.seconds == pytest.approx(cost_cells(np.array([[4.0], [16.0]]), np.array([2.0, 6.0])))
    assert iteration_times(cost, n=[64], Ks=[1]).uncovered == 1
    few = fit_iteration_cost([1, 8], K=[0, 0], seconds=[0.02, 0.03])
    assert few.loo_error is None and not few.interpolates
    with pytest.raises(StatsError, match="positive time"):
        fit_iteration_cost([1], K=[0], seconds=[0.0])


curves = st.lists(st.lists(st.floats(0.05, 0.95), min_size=7, max_size=7), min_size=1, max_size=3)


@given(curves)
def test_ragged_depths_are_the_best_of_all_assignments(conditional: list[list[float]]) -> None:
    survival = np.cumprod(np.array(conditional), axis=1)
    tau: FloatArray = 1 + np.cumsum(survival, axis=1)[:, [k - 1 for k in KS]]
    depths, cost = np.array(KS), measured_cost()

    def rate(choice: IntArray) -> float:
        return float(tau[np.arange(len(tau)), choice].sum() / cost.ragged(depths[choice]))

    every = np.array(np.meshgrid(*[range(4)] * len(tau))).reshape(len(tau), -1).T
    best = max(rate(choice) for choice in every)
    assert rate(ragged_depths(tau, Ks=depths, cost=cost)) == pytest.approx(best)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 11)), min_size=1, max_size=30))
def test_folds_never_share_a_prompt(links: list[tuple[int, int]]) -> None:
    named = np.unique(np.array(links)[:, 0], return_inverse=True)[1]
    prompt = np.array(links)[:, 1]
    try:
        fold = batch_folds(named, prompt=prompt)
    except StatsError:
        return
    sides = [set(prompt[fold[named] == side]) for side in (0, 1)]
    assert not sides[0] & sides[1] and sides[0] and sides[1]


def test_batches_that_all_share_prompts_cannot_be_split() -> None:
    with pytest.raises(StatsError, match="share their prompts"):
        batch_folds(np.array([0, 0, 1, 1]), prompt=np.array([0, 1, 1, 2]))


def test_folds_deal_every_class_to_both_sides() -> None:
    classes = np.repeat([0, 1, 2], 4)
    fold = batch_folds(np.arange(12), prompt=np.arange(12), classes=classes)
    assert [int(fold[classes == c].sum()) for c in range(3)] == [2, 2, 2]


@given(st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=5))
def test_halves_are_contiguous_and_lose_no_round(accepted: list[list[int]]) -> None:
    owner = np.repeat(np.arange(len(accepted)), [len(a) for a in accepted])
    flat = np.array([j for a in accepted for j in a], np.int64)
    first, second = contiguous_halves(owner, accepted=flat, prompts=len(accepted), K=3)
    for i, a in enumerate(accepted):
        middle = (len(a) + 1) // 2
        assert first[i].tolist() == np.bincount(a[:middle], minlength=4).tolist()
        assert second[i].tolist() == np.bincount(a[middle:], minlength=4).tolist()


def test_rates_are_never_averaged() -> None:
    assert harmonic_throughput([], tok_per_round=[], iter_time=[]) is None
    with pytest.raises(StatsError, match="above 0"):
        harmonic_throughput([1], tok_per_round=[0], iter_time=[1])


def test_a_lone_batch_of_a_class_gives_gaps_without_an_interval() -> None:
    runs = homogeneous_texts(32, seed=9, rate=0.6)
    requests = replace(requests_of(runs), classes=np.array([0, 0, 1, 1]))
    gaps = oracle_gaps(requests, Ks=KS, cost=measured_cost(), resampling=DRAWS)
    for gap in (gaps.scalar_over_static, gaps.curve_over_scalar, gaps.ragged_over_curve):
        assert gap.point is not None and gap.interval is None
        assert gap.reason == "a fold holds a single batch of a class: the spread between batches is unknown"
        assert not gaps.is_zero(gap)
