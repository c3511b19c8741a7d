"""The four policy levels of the oracle and how a batch is scored (method 3.1 to 3.3).

L0 one K for the workload, L1 a K per bin of the scalar that SGLang has, L2 a K per batch from its pooled curve, L3 a K
per request. Decisions read one half of each request's rounds, scores the other: L2 and L3 fit nothing on the training
batches, so without that split they would score the noise they chose. Rates aggregate harmonically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import BoolArray, FloatArray, IntArray, finite, same_length
from kit.stats.errors import StatsError
from kit.stats.iteration_cost import IterationCost

__all__ = ["Batches", "OracleRect", "harmonic_throughput", "oracle_rect", "ragged_depths"]

MAX_DINKELBACH_STEPS: Final = 50


class OracleRect(TypedDict):
    """Policies fitted on train and their throughput on test, in tokens per iteration time unit."""

    edges: list[float]
    bin_K: list[int]
    L1_source: str
    K0: int
    K1: list[int]
    K2: list[int]
    L0: float
    L1: float
    L2: float
    gap_L1_L0: float
    gap_L2_L1: float


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches as one policy problem: scalar and weight (batches,), the rest (batches, depths).

    scalar: mean accepted drafts on the decision half; decide and score: tokens per round and request on either half;
    seconds: time per iteration and request; weight: tokens to emit.
    """

    scalar: FloatArray
    decide: FloatArray
    score: FloatArray
    seconds: FloatArray
    weight: FloatArray

    def subset(self, chosen: BoolArray) -> Batches:
        """The batches where `chosen` is true."""
        return Batches(
            self.scalar[chosen], self.decide[chosen], self.score[chosen], self.seconds[chosen], self.weight[chosen]
        )

    def planned(self) -> FloatArray:
        """Time that each depth would take by the decision half, (batches, depths)."""
        time: FloatArray = self.weight[:, None] * self.seconds / self.decide
        return time

    def scored(self, choice: IntArray) -> FloatArray:
        """Time of the chosen depths (index per batch) by the scoring half, (batches,)."""
        rows = np.arange(len(choice))
        time: FloatArray = self.weight * self.seconds[rows, choice] / self.score[rows, choice]
        return time


@dataclass(frozen=True, slots=True)
class ScalarPolicy:
    """L1: a depth index per bin of the scalar, or the shipped rule, whichever was better on train."""

    edges: FloatArray
    bin_choice: IntArray
    shipped: bool
    Ks: IntArray

    def choose(self, scalar: FloatArray) -> IntArray:
        """Depth index per batch."""
        if self.shipped:
            return shipped_rule(scalar, self.Ks)
        where = np.searchsorted(self.edges, scalar, side="right")
        return np.asarray(self.bin_choice[where], np.int64)


def harmonic_throughput(weights: ArrayLike, *, tok_per_round: ArrayLike, iter_time: ArrayLike) -> float | None:
    """sum W / sum W t / tau: tokens over the time they take; None without tokens."""
    W, tau, t = (np.asarray(values, float) for values in (weights, tok_per_round, iter_time))
    same_length(weights=W, tok_per_round=tau, iter_time=t)
    finite(weights=W, tok_per_round=tau, iter_time=t)
    if (tau <= 0).any() or (t <= 0).any():
        raise StatsError("tokens per round and iteration times must be above 0")
    return float(W.sum() / (W * t / tau).sum()) if W.sum() > 0 else None


def shipped_rule(scalar: FloatArray, Ks: IntArray) -> IntArray:
    """SGLang's controller without its memory: the candidate nearest to floor(mean + 0.5) + 1, the smaller on a tie."""
    wanted = np.floor(scalar + 0.5) + 1
    return np.asarray(np.argmin(np.abs(Ks - wanted[:, None]), axis=1), np.int64)


def global_choice(train: Batches) -> int:
    """L0: index of the depth that takes the least time over the training batches; ties go to the smaller."""
    return int(np.argmin(train.planned().sum(axis=0)))


def scalar_policy(train: Batches, *, Ks: IntArray, nbins: int) -> ScalarPolicy:
    """L1 on the training batches: equal-count bins against the shipped rule; the fitted one wins a tie."""
    edges = np.quantile(train.scalar, np.arange(1, nbins) / nbins)
    where = np.searchsorted(edges, train.scalar, side="right")
    planned = train.planned()
    totals = np.stack([planned[where == b].sum(axis=0) for b in range(nbins)])
    filled = np.flatnonzero(np.bincount(where, minlength=nbins))
    # An empty bin takes the nearest filled one, the lower on a tie.
    nearest = filled[np.argmin(np.abs(np.arange(nbins)[:, None] - filled), axis=1)]
    bin_choice = np.argmin(totals, axis=1)[nearest]
    rows = np.arange(len(planned))
    fitted = planned[rows, bin_choice[where]].sum()
    shipped = planned[rows, shipped_rule(train.scalar, Ks)].sum()
    return ScalarPolicy(edges, bin_choice, bool(shipped < fitted), Ks)


def curve_choice(batches: Batches) -> IntArray:
    """L2: the depth that takes the least time by each batch's own pooled curve."""
    return np.asarray(np.argmin(batches.planned(), axis=1), np.int64)


def ragged_depths(tau: FloatArray, *, Ks: IntArray, cost: IterationCost) -> IntArray:
    """L3: a depth index per request (requests,) that maximises tokens per time by tau (requests, depths).

    Dinkelbach: for a rate r maximise sum tau - r t, where for each allowed deepest K the requests decide one by one;
    then r is updated until it no longer rises.
    """
    position_cost = float(cost.coefficients[1])
    choice, rate = np.zeros(len(tau), np.int64), 0.0
    for _ in range(MAX_DINKELBACH_STEPS):
        gain = tau - rate * position_cost * (Ks + 1)
        options = [np.argmax(gain[:, : top + 1], axis=1) for top in range(len(Ks))]
        rates = [_rate(tau, option, Ks, cost) for option in options]
        surplus = [_tokens(tau, option) - rate * cost.ragged(Ks[option]) for option in options]
        best = int(np.argmax(surplus))
        # The rate rises strictly until the optimum, so the first step without a rise ends the search.
        if rates[best] <= rate * (1 + 1e-12):
            break
        choice, rate = options[best], rates[best]
    return choice


def _tokens(tau: FloatArray, choice: IntArray) -> float:
    return float(tau[np.arange(len(choice)), choice].sum())


def _rate(tau: FloatArray, choice: IntArray, Ks: IntArray, cost: IterationCost) -> float:
    return _tokens(tau, choice) / cost.ragged(Ks[choice])


def oracle_rect(
    train: Sequence[Mapping[str, Any]],
    *,
    test: Sequence[Mapping[str, Any]],
    iter_time: Sequence[float],
    Ks: Sequence[int],
    nbins: int,
) -> OracleRect:
    """L0 to L2 from batches {x: scalar, dec and sc: tokens per round by depth on either half, w: tokens}."""
    fitting, scoring = _batches(train, iter_time), _batches(test, iter_time)
    depths = np.asarray(Ks, np.int64)
    policy = scalar_policy(fitting, Ks=depths, nbins=nbins)
    K0 = global_choice(fitting)
    choices = (np.full(len(test), K0), policy.choose(scoring.scalar), curve_choice(scoring))
    L0, L1, L2 = (float(scoring.weight.sum() / scoring.scored(choice).sum()) for choice in choices)
    return OracleRect(
        edges=policy.edges.tolist(),
        bin_K=depths[policy.bin_choice].tolist(),
        L1_source="shipped" if policy.shipped else "fitted",
        K0=int(depths[K0]),
        K1=depths[choices[1]].tolist(),
        K2=depths[choices[2]].tolist(),
        L0=L0,
        L1=L1,
        L2=L2,
        gap_L1_L0=L1 / L0 - 1,
        gap_L2_L1=L2 / L1 - 1,
    )


def _batches(rows: Sequence[Mapping[str, Any]], iter_time: Sequence[float]) -> Batches:
    scalar, decide, score, weight = (np.array([row[key] for row in rows], float) for key in ("x", "dec", "sc", "w"))
    return Batches(scalar, decide, score, np.broadcast_to(np.asarray(iter_time, float), decide.shape), weight)
