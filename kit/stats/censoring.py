"""Acceptance under adaptive K, where a shallow round never proposed the deep positions (method 1.4).

The controller deepens K because acceptance was high, so censoring is informative: Kaplan-Meier is printed with its
assumption, the Manski bounds always, and only a randomised depth earns a point estimate (IPCW). Everything but IPCW is
a function of the counts of (active K, accepted), so a capture of any length is reduced once and resampled by prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kit.stats.arrays import FloatArray, IntArray, optional, quotient, same_length, tails
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate
from kit.stats.intervals import (
    Resampling,
    no_interval_reason,
    percentile_interval,
    resampled_sums,
    share_interval,
    share_intervals,
)
from kit.stats.rounds import Rounds

__all__ = [
    "AdaptiveDepth",
    "DepthRow",
    "adaptive_curve",
    "ipcw",
    "ipcw_estimate",
    "km",
    "proposal_counts",
    "untraced_curve",
]

NOT_TRACED: Final = "without a trace an adaptive histogram does not say which rounds proposed a position"
SMALLEST_CHANCE: Final = 1e-12
KM_METHOD: Final = "Kaplan-Meier, assumes independent censoring; cluster bootstrap over prompts"


class DepthRow(TypedDict):
    """One position k of an adaptive trace; None once nobody was at risk."""

    k: int
    at_risk: int
    events: int
    a: float | None
    S_km: float | None
    S_naive: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class AdaptiveDepth:
    """Position k of an adaptive capture: counts, Kaplan-Meier, and the Manski bounds with their own intervals.

    `at_risk` is None where no trace tells which rounds proposed the position (`untraced_curve`).
    """

    k: int
    at_risk: int | None
    events: int
    km: Estimate
    lower: Estimate
    upper: Estimate


def km(trace: Sequence[Sequence[int]], *, Kmax: int) -> list[DepthRow]:
    """Kaplan-Meier by depth and Manski bounds from [active K, accepted] rows; K=0 rows are never at risk."""
    rows = np.array([tuple(row) for row in trace], np.int64).reshape(-1, 2)
    rounds = Rounds.of(np.zeros(len(rows), np.int64), active=rows[:, 0], accepted=rows[:, 1])
    at_risk, events, possible = depth_tallies(proposal_counts(rounds, prompts=1, Kmax=Kmax))[0]
    conditional, survival = quotient(events, at_risk), product_limit(at_risk, events)
    lower, upper = quotient(events, at_risk[:1]), quotient(possible, at_risk[:1])
    columns = (optional(values) for values in (conditional, survival, lower, upper))
    return [
        DepthRow(
            k=k + 1,
            at_risk=int(at_risk[k]),
            events=int(events[k]),
            a=a,
            S_km=s,
            S_naive=low,
            lower=low,
            upper=high,
        )
        for k, (a, s, low, high) in enumerate(zip(*columns, strict=True))
    ]


def proposal_counts(rounds: Rounds, *, prompts: int, Kmax: int) -> IntArray:
    """Rounds by (active K, accepted) per prompt, shape (prompts, Kmax+1, Kmax+1); a deeper round is an error."""
    if (rounds.active > Kmax).any():
        raise StatsError(f"a round was active at K={rounds.active.max()}, beyond Kmax={Kmax}; raise Kmax")
    side = Kmax + 1
    cell = (rounds.prompt * side + rounds.active) * side + rounds.accepted
    return np.bincount(cell, minlength=prompts * side * side).reshape(prompts, side, side)


def depth_tallies(table: IntArray) -> IntArray:
    """At risk, events, and events had every censored round gone on, for k = 1..Kmax: shape (prompts, 3, Kmax).

    Position k is at risk when K >= k and j >= k-1. As j <= K, its events are all rounds with j >= k, and at risk of
    k = 1 are all rounds that drafted.
    """
    depth = np.arange(table.shape[-1])
    beyond = tails(tails(table).swapaxes(-2, -1)).swapaxes(-2, -1)
    at_risk, events = beyond[..., depth[1:], depth[:-1]], beyond[..., depth[1:], depth[1:]]
    # Rounds at K = k that accepted all: censored at every deeper position.
    saturated = table[..., depth[1:], depth[1:]]
    possible = events + np.cumsum(saturated, axis=-1) - saturated
    return np.stack([at_risk, events, possible], axis=-2)


def product_limit(at_risk: NDArray[Any], events: NDArray[Any]) -> FloatArray:
    """Kaplan-Meier survival along the last axis; NaN from the first position nobody was at risk of."""
    return np.cumprod(quotient(events, at_risk), axis=-1, dtype=np.float64)


def adaptive_curve(
    rounds: Rounds, *, prompts: int, Kmax: int, resampling: Resampling, strata: ArrayLike | None = None
) -> tuple[AdaptiveDepth, ...]:
    """Kaplan-Meier and Manski bounds with 95 % intervals for k = 1..Kmax of one adaptive capture.

    The interval of the identified set runs from the lower end of `lower` to the upper end of `upper`.
    """
    tallies = depth_tallies(proposal_counts(rounds, prompts=prompts, Kmax=Kmax))
    present = tallies[:, 0, 0] > 0
    tallies, kept = tallies[present], None if strata is None else np.asarray(strata)[present]
    at_risk, events, _ = tallies.sum(axis=0)
    sums = resampled_sums(tallies.reshape(len(tallies), 3 * Kmax), resampling=resampling, strata=kept)
    drawn = sums.reshape(-1, 3, Kmax)
    draws = product_limit(drawn[:, 0], drawn[:, 1])
    points = optional(product_limit(at_risk, events))
    total = np.repeat(tallies[:, 0, :1], Kmax, axis=1).astype(float)
    lower = share_intervals(tallies[:, 1].astype(float), n=total, strata=kept)
    upper = share_intervals(tallies[:, 2].astype(float), n=total, strata=kept)
    return tuple(
        AdaptiveDepth(
            k=k + 1,
            at_risk=int(at_risk[k]),
            events=int(events[k]),
            km=_km_estimate(points[k], draws[:, k], len(tallies)),
            lower=lower[k],
            upper=upper[k],
        )
        for k in range(Kmax)
    )


def untraced_curve(
    hist: IntArray, *, candidates: Collection[int], strata: ArrayLike | None = None, level: float = 0.95
) -> tuple[AdaptiveDepth, ...]:
    """Bounds for k = 1..Kmax from histograms alone, when of each round's K only the `candidates` are known.

    hist has shape (prompts, Kmax+1). A round with j drafts kept can be one that was never asked for more only if j is a
    candidate, all of whose drafts it then kept; with candidate 0 a round in bin 0 can be one that drafted nothing. So
    S_k lies between the rounds with j >= k over all rounds, and those together with all that may have been stopped
    short of k over the rounds that surely drafted. The bounds of `adaptive_curve` lie inside.
    """
    stopped = np.array([j > 0 and j in candidates for j in range(hist.shape[1])])
    # All rounds with j >= k, and rounds with a candidate's j < k.
    events, short = tails(hist)[:, 1:], (np.cumsum(hist * stopped, axis=1))[:, :-1]
    rounds = np.repeat(hist.sum(axis=1, keepdims=True), events.shape[1], axis=1).astype(float)
    idle = hist[:, :1] if 0 in candidates else np.zeros_like(hist[:, :1])
    lower = share_intervals(events.astype(float), n=rounds, strata=strata, level=level)
    upper = share_intervals((events + short).astype(float), n=rounds - idle, strata=strata, level=level)
    unknown = Estimate.missing(NOT_TRACED, n=len(hist), method=KM_METHOD)
    return tuple(
        AdaptiveDepth(at + 1, None, int(count), unknown, low, high)
        for at, (count, low, high) in enumerate(zip(events.sum(axis=0).tolist(), lower, upper, strict=True))
    )


def _km_estimate(point: float | None, draws: FloatArray, prompts: int) -> Estimate:
    if point is None:
        return Estimate.missing("this depth was never at risk", n=prompts, method=KM_METHOD)
    interval = percentile_interval(draws, level=0.95)
    reason = None if interval else no_interval_reason(draws, "some resamples had nobody at risk")
    return Estimate(point, interval, prompts, KM_METHOD, reason)


def ipcw(trace: Sequence[Sequence[float]], *, k: int) -> float | None:
    """Hajek ratio of [active K, accepted, P(active >= k | history)] rows; None when nobody was at risk."""
    rows = np.array([tuple(row) for row in trace], float).reshape(-1, 3)
    accepted, weight = _weighted(rows[:, 0], rows[:, 1], rows[:, 2], k)
    return None if weight.sum() == 0 else float(accepted.sum() / weight.sum())


def ipcw_estimate(
    rounds: Rounds, *, probability: FloatArray, k: int, prompts: int, strata: ArrayLike | None = None
) -> Estimate:
    """S_k of a randomised-depth capture; probability (rounds,) is P(active >= k) as drawn, in the rounds' order."""
    accepted, weight = _weighted(rounds.active, rounds.accepted, probability, k)
    return share_interval(
        np.bincount(rounds.prompt, accepted, minlength=prompts),
        n=np.bincount(rounds.prompt, weight, minlength=prompts),
        strata=strata,
    )


def _weighted(
    active: NDArray[Any], accepted: NDArray[Any], probability: FloatArray, k: int
) -> tuple[FloatArray, FloatArray]:
    same_length(active=active, accepted=accepted, probability=probability)
    at_risk = active >= k
    # Below this a single round would outweigh any capture.
    if not ((probability >= SMALLEST_CHANCE) & (probability <= 1))[at_risk].all():
        raise StatsError(f"P(active >= {k}) is outside (0, 1] for a round at that depth; IPCW needs a randomised K")
    weight = np.divide(1.0, probability, out=np.zeros(len(probability)), where=at_risk)
    return weight * (accepted >= k), weight
