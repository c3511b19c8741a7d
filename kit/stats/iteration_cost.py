"""Time of one iteration as a function of batch size and depth, fitted to measured static cells (method 3.1).

    t(n, K) = c0 + c1 n (K+1) + c2 K + c3 1{K>0} + c4 n        coefficients >= 0, relative residuals

c0 streams the weights, c1 verifies a position, c2 is a serial draft step, c3 the fixed tax of speculating at all, c4
the work per request. The model only interpolates: a query outside the measured grid is left NaN and counted, and a
count above 0 forbids the oracle. With a leave-one-cell-out error above 5 % only the measured cells are served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from kit.stats.arrays import FloatArray, IntArray, finite, same_length
from kit.stats.errors import StatsError
from kit.units import Seconds

__all__ = ["IterationCost", "IterationTimes", "fit_iteration_cost", "iteration_times"]

MAX_LOO_ERROR: Final = 0.05
MIN_CELLS: Final = 6


@dataclass(frozen=True, slots=True)
class IterationCost:
    """Fitted coefficients (c0..c4), the cells (n, K, seconds) behind them and the worst leave-one-cell-out error."""

    coefficients: FloatArray
    n: FloatArray
    K: FloatArray
    seconds: FloatArray
    loo_error: float | None

    @property
    def interpolates(self) -> bool:
        """Whether the fit may be used between measured cells."""
        return self.loo_error is not None and self.loo_error <= MAX_LOO_ERROR

    def ragged(self, depths: IntArray) -> Seconds:
        """Time of one iteration whose requests run at their own depths, (n,)."""
        deepest = depths.max()
        terms = np.array([1.0, (depths + 1).sum(), deepest, deepest > 0, len(depths)])
        return float(self.coefficients @ terms)


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """Seconds per iteration (batches, depths) and how many entries the measurements do not cover (NaN there)."""

    seconds: FloatArray
    uncovered: int


def _design(n: FloatArray, K: FloatArray) -> FloatArray:
    return np.stack([np.ones(len(n)), n * (K + 1), K, (K > 0).astype(float), n], axis=1)


def _solve(n: FloatArray, K: FloatArray, seconds: FloatArray) -> FloatArray:
    return np.asarray(optimize.nnls(_design(n, K) / seconds[:, None], np.ones(len(n)))[0], float)


def fit_iteration_cost(n: ArrayLike, *, K: ArrayLike, seconds: ArrayLike) -> IterationCost:
    """Non-negative least squares with weights 1/t^2 over cells of batch n, depth K and iteration time (cells,)."""
    batch, depth, times = (np.asarray(values, float) for values in (n, K, seconds))
    cells = same_length(n=batch, K=depth, seconds=times)
    finite(n=batch, K=depth, seconds=times)
    if cells == 0 or (times <= 0).any() or (batch < 1).any() or (depth < 0).any():
        raise StatsError("cells need a batch of at least 1, a depth of at least 0 and a positive time")
    loo = None if cells < MIN_CELLS else max(_left_out_error(batch, depth, times, i) for i in range(cells))
    return IterationCost(_solve(batch, depth, times), batch, depth, times, loo)


def _left_out_error(n: FloatArray, K: FloatArray, seconds: FloatArray, i: int) -> float:
    kept = np.arange(len(n)) != i
    predicted = _design(n[~kept], K[~kept]) @ _solve(n[kept], K[kept], seconds[kept])
    return float(abs(predicted[0] / seconds[i] - 1))


def iteration_times(cost: IterationCost, *, n: ArrayLike, Ks: ArrayLike) -> IterationTimes:
    """Times for batches n (batches,) at depths Ks (depths,): from the fit, or measured cells only if it may not."""
    grid_n, grid_K = np.meshgrid(np.asarray(n, float), np.asarray(Ks, float), indexing="ij")
    flat_n, flat_K = grid_n.ravel(), grid_K.ravel()
    seconds = np.full(len(flat_n), np.nan)
    if cost.interpolates:
        inside = (cost.n.min() <= flat_n) & (flat_n <= cost.n.max())
        inside &= (cost.K.min() <= flat_K) & (flat_K <= cost.K.max())
        seconds[inside] = _design(flat_n[inside], flat_K[inside]) @ cost.coefficients
    else:
        for batch, depth, measured in zip(cost.n, cost.K, cost.seconds, strict=True):
            seconds[(flat_n == batch) & (flat_K == depth)] = measured
    return IterationTimes(seconds.reshape(grid_n.shape), int(np.isnan(seconds).sum()))
