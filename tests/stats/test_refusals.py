"""What cannot be a measurement is refused in one line, whichever function meets it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from kit import stats
from kit.stats import StatsError

NAN, INF = math.nan, math.inf
LEVELS = [1, 2, 4, 8, 16, 32]

REFUSED: dict[str, Callable[[], object]] = {
    "counts beyond what a float holds": lambda: stats.survival([2**62, 2**62], K=1),
    "counts beyond 64 bits": lambda: stats.pooled([[2**64]], K=1),
    "half a round": lambda: stats.survival([0.5, 1], K=1),  # type: ignore[list-item]
    "a NaN count": lambda: stats.survival([NAN, 1], K=1),  # type: ignore[list-item]
    "a NaN in a ratio": lambda: stats.ratio_se([1, 1], n=[NAN, 1]),
    "an infinite ratio": lambda: stats.ratio_interval([INF, 1], n=[1, 1]),
    "a sum beyond a float": lambda: stats.mean_interval([1e308, 1e308]),
    "a NaN in a difference": lambda: stats.paired_ratio_diff([1, 1], na=[NAN, 1], xb=[1, 1], nb=[1, 1]),
    "unequal lengths in a bootstrap": lambda: stats.ratio_bootstrap([1], n=[1, 2], resampling=stats.Resampling(1)),
    "a NaN p-value": lambda: stats.holm([0.5, NAN]),
    "a p-value above 1": lambda: stats.holm([2.0]),
    "a NaN cell": lambda: stats.gate_decision([[NAN, 1]], delta=0.02),
    "a negative standard error": lambda: stats.gate_decision([[0, -1]], delta=0.02),
    "a margin of 0": lambda: stats.gate_decision([[0, 1]], delta=0),
    "a NaN spread": lambda: stats.n_needed(24, d=0.1, se=NAN, delta=0.02),
    "no cell": lambda: stats.n_needed(24, d=0.1, se=0.1, delta=0.02, m=0),
    "alpha of 0": lambda: stats.min_prompts_zero_discordance(0.02, alpha=0),
    "alpha above 1": lambda: stats.cp_upper(0, n=10, alpha=2),
    "a NaN margin of ties": lambda: stats.tau_from_aa([NAN]),
    "unequal margins": lambda: stats.prefill_spread([1, 2], prefill_margins=[1]),
    "more diverged than compared": lambda: stats.lossless_verdict(9, divergences=[], tau=1, aa_n=5, aa_diverged=6),
    "a NaN probability": lambda: stats.ipcw([[3, 1, NAN]], k=1),
    "a negative depth": lambda: stats.walk([1, 0], K=-1),
    "a conversion to a negative depth": lambda: stats.convert([0.5], K_from=1, K_to=-1),
    "a NaN curve": lambda: stats.convert([NAN], K_from=1, K_to=0),
    "no text": lambda: stats.mixture([0], p=[0.5], K=3),
    "acceptance above 1": lambda: stats.mixture([1], p=[2], K=3),
    "a locked chain": lambda: stats.markov_q(1, b=0, K=3),
    "more differences than sites": lambda: stats.gate2_bound([5], M=[3], delta=0.02),
    "a ratio of 0 that crosses": lambda: stats.crossover([1, 2], ratio=[0, 1]),
    "a NaN block": lambda: stats.log_ratio_ci([NAN, 1], b=[1, 1]),
    "an infinite throughput": lambda: stats.ratio_estimate([INF] * 3, b=[1] * 3),
    "a limit beyond a float": lambda: stats.ratio_estimate([1e-140, 1, 1e140], b=[1e140, 1, 1e-140]),
    "a NaN level": lambda: stats.RatioCurve.of([NAN, 2], arm=np.ones((3, 2)), baseline=np.ones((3, 2))),
    "a throughput of 0 to saturate": lambda: stats.saturation(LEVELS, X=[[0] * 6]),
    "a missing cell to saturate": lambda: stats.saturation(LEVELS, X=[[NAN] * 6]),
    "throughputs of other levels": lambda: stats.peak_ratio(LEVELS, arm=[[1, 2]], baseline=[[1, 2]]),
    "a curve without a denominator": lambda: stats.usl(2, lam=1, sigma=-1, kappa=0),
    "a NaN iteration of a batch": lambda: stats.harmonic_throughput([1], tok_per_round=[1], iter_time=[NAN]),
    "a throughput next to nothing": lambda: stats.saturation2(1e-320, xinf=1),
    "an endless plateau": lambda: stats.saturation2(1, xinf=INF),
    "a NaN throughput": lambda: stats.cost(1.5, K=3, B=8, X=NAN, X0=1),
    "a depth below 0": lambda: stats.cost(1.5, K=-1, B=8, X=1, X0=1),
    "a NaN iteration": lambda: stats.speculation_tax([1, 3], iter_ms=[1, NAN], iter_ms_0=1),
    "an infinite time": lambda: stats.fit_iteration_cost([1] * 6, K=range(6), seconds=[INF] * 6),
    "a NaN in a group": lambda: stats.icc1([[NAN, 1], [2, 3]]),
    "a NaN observation": lambda: stats.mser5([NAN] * 10),
    "a window without a load": lambda: stats.window([[0, 1]], tokens=[], C=0),
    "a NaN departure": lambda: stats.window([[0, NAN]], tokens=[], C=1),
    "a NaN token count": lambda: stats.window([[0, 1]], tokens=[[0.5, NAN]], C=1),
    "a NaN launch sd": lambda: stats.paired_power(1.1, launch_sd=NAN, blocks=3),
    "a ratio of 0 to plan for": lambda: stats.blocks_needed(0, launch_sd=0.03),
    "a negative request": lambda: stats.Rounds.of([-1], active=3, accepted=[1]),
    "a request beyond the prompts": lambda: stats.Rounds.of([5], active=3, accepted=[1]).histograms(prompts=1, K=3),
}


class TestWhatIsNoMeasurement:
    @pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
    @pytest.mark.filterwarnings("error")
    def test_is_refused_in_one_line(self, call: Callable[[], object]) -> None:
        with pytest.raises(StatsError) as refusal:
            call()
        assert "\n" not in str(refusal.value)

    def test_an_unknown_margin_is_neither_a_tie_nor_a_violation(self) -> None:
        assert stats.divergence_class(NAN, rank=2, tau=0.01) == "unknown"

    def test_a_shift_of_all_values_leaves_the_intraclass_correlation(self) -> None:
        near, far = ([[base + 1, base + 2], [base + 5, base + 6]] for base in (0, 1e9))
        assert stats.icc1(far) == pytest.approx(stats.icc1(near))
