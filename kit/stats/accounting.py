"""Where speculation's time goes: iteration cost, break-even acceptance, the ceiling no draft can pass (method 6).

    t_K(B) = B tau(K) / X_K(B)      break-even accepted drafts = t_K / t_0 - 1      ceiling = (K+1) t_0 / t_K

A ceiling below 1 means that even perfect acceptance loses at that depth and batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import finite, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval
from kit.stats.speedup import ratio_estimate
from kit.units import TokensPerSecond

__all__ = ["Cost", "CostAccount", "SpeculationTax", "cost", "cost_account", "speculation_tax"]

METHOD: Final = "t on the log ratio over blocks, acceptance error added in quadrature"


class Cost(TypedDict):
    """Iteration times in milliseconds and what they imply, for one cell against the same cell without speculation."""

    iter_ms: float
    iter_ms_0: float
    time_ratio: float
    speedup: float
    break_even_accepted: float
    accepted: float
    ceiling: float
    tokens_per_position: float


@dataclass(frozen=True, slots=True)
class CostAccount:
    """`Cost` with the launch noise propagated into every number that depends on it."""

    K: int
    batch: int
    iter_ms: Estimate
    iter_ms_0: Estimate
    time_ratio: Estimate
    speedup: Estimate
    break_even_accepted: Estimate
    accepted: Estimate
    ceiling: Estimate
    tokens_per_position: Estimate

    @property
    def no_draft_can_win(self) -> bool | None:
        """Whether even perfect acceptance loses here, by the whole interval of the ceiling; None when that is open."""
        interval = self.ceiling.interval
        if interval is None or interval.lo < 1 <= interval.hi:
            return None
        return interval.hi < 1


@dataclass(frozen=True, slots=True)
class SpeculationTax:
    """t_K = fixed + per_depth K over K >= 1 in milliseconds; tax is the fixed part beyond a plain iteration."""

    fixed_ms: float
    per_depth_ms: float
    tax_ms: float
    worst_residual_ms: float


def cost(tok_per_round: float, *, K: int, B: int, X: TokensPerSecond, X0: TokensPerSecond) -> Cost:
    """Cost of depth K at batch B with throughput X, against X0 without speculation."""
    if K < 0 or not all(0 < value < math.inf for value in (tok_per_round, B, X, X0)):
        raise StatsError(
            f"K={K} is below 0, or not above 0: tokens per round {tok_per_round}, batch {B}, throughputs {X}, {X0}"
        )
    time_ratio = tok_per_round * X0 / X
    return Cost(
        iter_ms=1000 * B * tok_per_round / X,
        iter_ms_0=1000 * B / X0,
        time_ratio=time_ratio,
        speedup=X / X0,
        break_even_accepted=time_ratio - 1,
        accepted=tok_per_round - 1,
        ceiling=(K + 1) / time_ratio,
        tokens_per_position=tok_per_round / (K + 1),
    )


def cost_account(tau: Estimate, *, K: int, batch: int, X: ArrayLike, X0: ArrayLike) -> CostAccount | None:
    """Cost with intervals: tau is tokens per round (over prompts), X and X0 (blocks,) are paired by block.

    None when tau or every pair of throughputs is missing: then there is nothing to account for.
    """
    over, under = np.asarray(X, float), np.asarray(X0, float)
    speedup = ratio_estimate(over, b=under)
    if tau.point is None or speedup.point is None:
        return None
    time_ratio = _times(speedup.mapped(lambda ratio: 1 / ratio), tau)
    ones = np.ones(len(over))
    return CostAccount(
        K=K,
        batch=batch,
        iter_ms=_times(ratio_estimate(1000 * batch * ones, b=over), tau),
        iter_ms_0=ratio_estimate(1000 * batch * ones, b=under),
        time_ratio=time_ratio,
        speedup=speedup,
        break_even_accepted=time_ratio.mapped(lambda ratio: ratio - 1),
        accepted=tau.mapped(lambda tokens: tokens - 1),
        ceiling=time_ratio.mapped(lambda ratio: (K + 1) / ratio),
        tokens_per_position=tau.mapped(lambda tokens: tokens / (K + 1)),
    )


def _times(launches: Estimate, tau: Estimate) -> Estimate:
    """Product of independent estimates: half-widths of the logs add in quadrature (tau's is much the smaller)."""
    if launches.point is None or tau.point is None:
        return launches
    point = launches.point * tau.point
    if launches.interval is None:
        return Estimate(point, None, launches.n, METHOD, launches.reason)
    if tau.interval is None:
        return Estimate(point, None, launches.n, METHOD, tau.reason)
    tau_spread = (tau.interval.hi - tau.interval.lo) / (2 * tau.point)
    half = math.hypot(math.log(launches.interval.hi / launches.point), tau_spread)
    interval = Interval(point * math.exp(-half), point * math.exp(half), launches.interval.level)
    return Estimate(point, interval, launches.n, METHOD)


def speculation_tax(K: Sequence[int], *, iter_ms: Sequence[float], iter_ms_0: float) -> SpeculationTax | None:
    """Line through iteration times over K >= 1; None with fewer than two depths."""
    depth, times = np.asarray(K, float), np.asarray(iter_ms, float)
    finite(K=depth, iter_ms=times, iter_ms_0=iter_ms_0)
    same_length(K=depth, iter_ms=times)
    if len(np.unique(depth)) < 2 or depth.min() < 1:
        return None
    per_depth, fixed = np.polyfit(depth, times, 1).tolist()
    worst = float(np.abs(times - fixed - per_depth * depth).max())
    return SpeculationTax(fixed, per_depth, fixed - iter_ms_0, worst)
