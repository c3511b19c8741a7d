"""Prompts without a spread to judge by: no interval is ever narrower than what their number can show."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from kit.stats import (
    Estimate,
    GateWord,
    Interval,
    Resampling,
    Rounds,
    adaptive_curve,
    class_ratio,
    conversion_residuals,
    cost_account,
    curve_gate,
    ipcw_estimate,
    mean_interval,
    peak_ratio,
    ratio_bootstrap,
    ratio_interval,
    share_interval,
    spread,
    survival_curve,
    usl_peak,
)

DRAWS = Resampling(seed=1, draws=200)
LEVELS = [1, 2, 4, 8, 16, 32]


def same(row: list[int], *, prompts: int) -> np.ndarray:
    return np.array([row] * prompts, dtype=np.int64)


class TestShares:
    @pytest.mark.parametrize("prompts", [2, 10, 200])
    def test_prompts_of_one_share_are_bounded_by_how_many_they_are(self, prompts: int) -> None:
        found = share_interval([5] * prompts, n=[10] * prompts).interval
        unseen = 1 - 0.025 ** (1 / prompts)
        assert found is not None
        assert (found.lo, found.hi) == pytest.approx((max(0.5 - unseen, 0), min(0.5 + unseen, 1)))

    def test_a_position_that_one_prompt_reached_has_no_interval(self) -> None:
        deepest = survival_curve(np.vstack([same([5, 0, 0, 0], prompts=30), [[1, 1, 1, 1]]])).conditional[2]
        assert (deepest.point, deepest.interval, deepest.n) == (0.5, None, 1)
        assert deepest.reason

    def test_degrees_of_freedom_are_those_of_the_prompts_at_risk(self) -> None:
        at_risk = ratio_interval([1, 2, 3], n=[4, 4, 4])
        assert at_risk.interval is not None
        with_idle = ratio_interval([1, 2, 3, *[0] * 97], n=[4, 4, 4, *[0] * 97])
        assert with_idle.n == 3 and with_idle.interval is not None
        # t on 2 degrees of freedom is 4.30; on 99 it would be 1.98, less than half as wide.
        assert np.ptp([with_idle.interval.lo, with_idle.interval.hi]) > 0.8 * (
            at_risk.interval.hi - at_risk.interval.lo
        )

    def test_a_randomised_depth_that_always_accepts_is_not_certain(self) -> None:
        rounds = Rounds.of([0, 1], active=3, accepted=[3, 3])
        found = ipcw_estimate(rounds, probability=np.full(2, 0.5), k=2, prompts=2)
        assert found.point == 1.0 and found.interval is not None and found.interval.lo < 0.5


class TestBootstraps:
    @pytest.mark.parametrize(
        "found",
        [
            ratio_bootstrap([1], n=[2], resampling=DRAWS),
            ratio_bootstrap([1, 1], n=[2, 2], resampling=DRAWS),
            ratio_interval([1, 1], n=[2, 2]),
            mean_interval([3.0, 3.0]),
            spread(same([5, 5], prompts=9), resampling=DRAWS).sd_between,
            class_ratio(same([5, 5], prompts=4), classes=list("abab"), over="a", under="b", resampling=DRAWS),
            conversion_residuals({3: same([4, 0, 0, 0], prompts=9), 1: same([4, 0], prompts=9)}, resampling=DRAWS)[
                0
            ].residual,
            adaptive_curve(Rounds.of([0, 1], active=3, accepted=[3, 3]), prompts=2, Kmax=3, resampling=DRAWS)[0].km,
        ],
    )
    def test_prompts_that_are_all_alike_give_a_reason_instead_of_an_interval(self, found: Estimate) -> None:
        assert found.point is not None
        assert found.interval is None
        assert found.reason == "all prompts are alike: their spread says nothing"


class TestGateV1:
    @pytest.mark.parametrize(
        ("prompts", "word"), [(2, GateWord.INCONCLUSIVE), (148, GateWord.INCONCLUSIVE), (149, GateWord.PASS)]
    )
    def test_a_dead_draft_passes_only_on_as_many_prompts_as_show_it(self, prompts: int, word: GateWord) -> None:
        captures = {1: {1: same([9, 0], prompts=prompts), 3: same([9, 0, 0, 0], prompts=prompts)}}
        gate = curve_gate(captures, resampling=DRAWS)
        assert gate.word is word
        assert gate.worst is not None and gate.worst.n_needed == 149

    def test_a_difference_that_all_prompts_share_fails_by_how_many_they_are(self) -> None:
        def word(prompts: int) -> GateWord:
            captures = {1: {1: same([7, 3], prompts=prompts), 3: same([9, 1, 0, 0], prompts=prompts)}}
            return curve_gate(captures, resampling=DRAWS).word

        assert [word(2), word(60)] == [GateWord.INCONCLUSIVE, GateWord.FAIL]

    def test_lone_prompts_of_their_classes_are_not_agreement(self) -> None:
        captures = {1: {1: same([7, 3], prompts=200), 3: same([7, 3, 0, 0], prompts=200)}}
        gate = curve_gate(captures, resampling=DRAWS, strata=range(200))
        assert gate.word is GateWord.INCONCLUSIVE
        assert gate.worst is not None and gate.worst.difference.interval is None


class TestCost:
    def test_acceptance_without_an_interval_leaves_its_products_without_one(self) -> None:
        tau = Estimate.bare(1.5, n=1, method="count", reason="one prompt")
        account = cost_account(tau, K=3, batch=8, X=[1.0, 1.1, 1.2], X0=[1.0, 1.0, 1.0])
        assert account is not None
        assert account.ceiling.interval is None and account.ceiling.reason == "one prompt"
        assert isinstance(account.speedup.interval, Interval)


class TestSaturation:
    @pytest.mark.parametrize(("sigma", "kappa"), [(2.0, 0.0), (0.9, 10.0), (2.0, 0.1)])
    def test_a_curve_that_only_falls_is_highest_at_one_request(self, sigma: float, kappa: float) -> None:
        assert usl_peak(100.0, sigma=sigma, kappa=kappa) == {"C_peak": 1.0, "X_max": 100.0}

    def test_the_ratio_of_maxima_of_a_falling_arm_is_not_its_floor(self) -> None:
        def blocks(X: ArrayLike) -> np.ndarray:
            return np.outer([0.99, 1.0, 1.01], np.asarray(X, float))

        found = peak_ratio(LEVELS, arm=blocks([100, 52, 26, 13, 7, 3]), baseline=blocks([100] * 6)).ratio
        assert found.point == pytest.approx(1.0, rel=0.1)
