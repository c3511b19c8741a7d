"""Oracle gaps, cross-fitted: decide on one half of the rounds, score on the other, fit and test on disjoint batches.

Batches are split so that no prompt is on both sides, rounds inside a request into two contiguous halves; the four
combinations are averaged (method 3.4). Intervals resample test batches, and iteration times vary by their own launch
noise in the same draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import csgraph

from kit.stats.arrays import BoolArray, FloatArray, IntArray, quotient, same_length, tails
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval
from kit.stats.intervals import Resampling, resampled_sums, stratum_codes
from kit.stats.iteration_cost import IterationCost, iteration_times
from kit.stats.oracle import Batches, curve_choice, global_choice, ragged_depths, scalar_policy

__all__ = ["OracleGaps", "OracleRequests", "batch_folds", "contiguous_halves", "oracle_gaps"]

MAX_BINS: Final = 5
MIN_BATCHES_PER_BIN: Final = 8
ZERO_MARGIN: Final = 0.01
LEVELS: Final = 4
LONE_BATCH: Final = "a fold holds a single batch of a class: the spread between batches is unknown"
METHOD: Final = "cross-fitted over round halves and batch folds; bootstrap of test batches"


@dataclass(frozen=True, slots=True)
class OracleRequests:
    """Requests of the deepest static capture, in the batches (waves) they ran in.

    batch, prompt: (requests,) indices; first, second: histograms of either half of the rounds, (requests, K+1);
    classes: composition class of each batch (batches,), by which folds are dealt and batches resampled;
    replayed: the same halves of each candidate depth's own capture, in the order of the depths, where shallow depths
    are replayed instead of read off the deepest curve (method 3.6).
    """

    batch: IntArray
    prompt: IntArray
    first: IntArray
    second: IntArray
    classes: IntArray | None = None
    replayed: tuple[tuple[IntArray, IntArray], ...] | None = None


@dataclass(frozen=True, slots=True)
class OracleGaps:
    """Relative gaps between neighbouring levels; `curve_over_scalar` (L2 - L1) is the headline.

    Each carries a 90 % interval, so that "zero within noise" is an equivalence test with a margin of 1 %.
    """

    scalar_over_static: Estimate
    curve_over_scalar: Estimate
    ragged_over_curve: Estimate
    batches: int
    uncovered: int

    def is_zero(self, gap: Estimate) -> bool:
        """Whether the gap is shown to be smaller than 1 %."""
        return gap.interval is not None and gap.interval.within(ZERO_MARGIN)


def contiguous_halves(prompt: IntArray, *, accepted: IntArray, prompts: int, K: int) -> tuple[IntArray, IntArray]:
    """Histograms (prompts, K+1) of the first and second half of each request's rounds; rounds in time order."""
    same_length(prompt=prompt, accepted=accepted)
    total = np.bincount(prompt, minlength=prompts)
    order = np.argsort(prompt, kind="stable")
    rank = np.empty(len(prompt), np.int64)
    rank[order] = np.arange(len(prompt)) - np.repeat(np.cumsum(total) - total, total)
    late = 2 * rank >= total[prompt]
    cell = (2 * prompt + late) * (K + 1) + accepted
    both = np.bincount(cell, minlength=2 * prompts * (K + 1)).reshape(prompts, 2, K + 1)
    return both[:, 0], both[:, 1]


def batch_folds(batch: IntArray, *, prompt: IntArray, classes: ArrayLike | None = None) -> IntArray:
    """Fold 0 or 1 per batch so that no prompt is in both; classes (batches,) are dealt evenly.

    Raises StatsError when shared prompts tie all batches together.
    """
    batches, prompts = int(batch.max(initial=-1)) + 1, int(prompt.max(initial=-1)) + 1
    links = sparse.coo_array((np.ones(len(batch)), (batch, batches + prompt)), shape=(batches + prompts,) * 2)
    groups, label = csgraph.connected_components(links, directed=False)
    label = label[:batches]
    first = np.unique(label, return_index=True)[1]
    if len(first) < 2:
        raise StatsError(f"{batches} batches share their prompts, all of them; fit and test need disjoint prompts")
    codes = stratum_codes(classes, clusters=batches)
    fold = np.empty(groups, np.int64)
    fold[label[first[np.lexsort((first, codes[first]))]]] = np.arange(len(first)) % 2
    assigned: IntArray = fold[label]
    return assigned


def oracle_gaps(
    requests: OracleRequests,
    *,
    Ks: Sequence[int],
    cost: IterationCost,
    resampling: Resampling,
    time_se: ArrayLike | None = None,
) -> OracleGaps:
    """Gaps L1-L0, L2-L1, L3-L2 over candidate depths Ks (ascending).

    time_se (depths,): relative standard error of each depth's iteration time from launches, 0 when left out.
    """
    problem = _CrossFit.of(requests, np.asarray(Ks, np.int64), cost)
    batches, uncovered = problem.seconds.shape[0], int(np.isnan(problem.seconds).sum())
    if uncovered:
        return _withheld(f"{uncovered} (batch size, depth) queries lie outside the measured cells", batches, uncovered)
    fold = batch_folds(requests.batch, prompt=requests.prompt, classes=requests.classes)
    columns = np.stack(list(problem.combinations(fold)), axis=1)
    strata = 2 * stratum_codes(requests.classes, clusters=batches) + fold
    flat = columns.reshape(batches, -1)
    sums = np.vstack([flat.sum(axis=0), resampled_sums(flat, resampling=resampling, strata=strata)])
    gaps = _gaps(sums.reshape(len(sums), *columns.shape[1:]), time_se, resampling)
    lone = bool((np.unique(strata, return_counts=True)[1] < 2).any())
    scalar, curve, ragged = (_estimate(draws, batches, lone=lone) for draws in gaps.T)
    return OracleGaps(scalar, curve, ragged if cost.interpolates else _no_ragged(batches), batches, 0)


def _withheld(reason: str, batches: int, uncovered: int) -> OracleGaps:
    missing = Estimate.missing(reason, n=batches, method=METHOD)
    return OracleGaps(missing, missing, missing, batches, uncovered)


def _no_ragged(batches: int) -> Estimate:
    reason = "the cost model misses a left-out cell by more than 5 %, and ragged depths have no measured cell"
    return Estimate.missing(reason, n=batches, method=METHOD)


def _tokens_per_round(h: IntArray, batch: IntArray, depths: IntArray) -> FloatArray:
    """tau per request and depth (requests, depths); a request without rounds in this half takes its batch's mean."""
    tail = tails(h).astype(float)
    curve = np.cumsum(quotient(tail, tail[:, :1]), axis=1)[:, depths]
    known = ~np.isnan(curve[:, 0])
    count = np.bincount(batch, known)
    sums = np.stack([np.bincount(batch, np.where(known, column, 0.0)) for column in curve.T], axis=1)
    filled: FloatArray = np.where(known[:, None], curve, quotient(sums, count[:, None])[batch])
    return filled


def _replayed_tokens(replayed: Sequence[tuple[IntArray, IntArray]], batch: IntArray, depths: IntArray) -> FloatArray:
    """tau per half, request and depth, each depth from its own capture."""
    columns = [
        [_tokens_per_round(h, batch, np.array([K]))[:, 0] for K, h in zip(depths.tolist(), half, strict=True)]
        for half in zip(*replayed, strict=True)
    ]
    return np.stack([np.stack(half, axis=1) for half in columns])


def _batch_mean(values: FloatArray, batch: IntArray) -> FloatArray:
    size = np.bincount(batch)
    return np.stack([np.bincount(batch, column) / size for column in values.T], axis=1)


@dataclass(frozen=True, slots=True)
class _CrossFit:
    """Everything that the combinations share.

    scalar: mean accepted per half and batch (2, batches); tau: tokens per round per half (2, requests, depths);
    seconds: time per iteration and request (batches, depths), NaN where unmeasured; weight: tokens (batches,).
    """

    batch: IntArray
    depths: IntArray
    scalar: FloatArray
    tau: FloatArray
    seconds: FloatArray
    weight: FloatArray
    cost: IterationCost

    @classmethod
    def of(cls, requests: OracleRequests, depths: IntArray, cost: IterationCost) -> _CrossFit:
        batch, halves = requests.batch, (requests.first, requests.second)
        replayed = requests.replayed
        size = np.bincount(batch)
        emitted = (requests.first + requests.second) @ np.arange(1, requests.first.shape[1] + 1)
        deepest = np.array([requests.first.shape[1] - 1])
        return cls(
            batch=batch,
            depths=depths,
            scalar=np.stack([_batch_mean(_tokens_per_round(h, batch, deepest), batch)[:, 0] - 1 for h in halves]),
            tau=np.stack([_tokens_per_round(h, batch, depths) for h in halves])
            if replayed is None
            else _replayed_tokens(replayed, batch, depths),
            seconds=iteration_times(cost, n=size, Ks=depths).seconds / size[:, None],
            weight=np.bincount(batch, emitted).astype(float),
            cost=cost,
        )

    def combinations(self, fold: IntArray) -> Iterator[FloatArray]:
        """Per (deciding half, training fold): (batches, 1 + levels, depths), zero where a batch trains.

        Entry 0 is the batch's weight, the others the time each level takes, filed under the depth it chose.
        """
        for decide, score in ((0, 1), (1, 0)):
            decided, scored = (_batch_mean(self.tau[half], self.batch) for half in (decide, score))
            batches = Batches(self.scalar[decide], decided, scored, self.seconds, self.weight)
            ragged = self._ragged(decide, score)
            for train in (0, 1):
                yield self._filed(batches, fold == train, ragged)

    def _filed(self, batches: Batches, train: BoolArray, ragged: tuple[IntArray, FloatArray]) -> FloatArray:
        fitting, levels = batches.subset(train), np.arange(len(self.depths))
        bins = max(1, min(MAX_BINS, int(train.sum()) // MIN_BATCHES_PER_BIN))
        scalar = scalar_policy(fitting, Ks=self.depths, nbins=bins).choose(batches.scalar)
        static = np.full(len(train), global_choice(fitting))
        plans = [(choice, batches.scored(choice)) for choice in (static, scalar, curve_choice(batches))]
        filed = [batches.weight[:, None] * (levels == 0)]
        filed += [time[:, None] * np.equal.outer(choice, levels) for choice, time in (*plans, ragged)]
        return np.stack(filed, axis=1) * ~train[:, None, None]

    def _ragged(self, decide: int, score: int) -> tuple[IntArray, FloatArray]:
        """Deepest depth chosen (index) and time of each batch when every request runs at its own depth."""
        deepest, time = np.zeros(len(self.weight), np.int64), np.zeros(len(self.weight))
        for b, members in _members(self.batch):
            choice = ragged_depths(self.tau[decide, members], Ks=self.depths, cost=self.cost)
            tokens = self.tau[score, members, choice].sum()
            deepest[b], time[b] = choice.max(), self.weight[b] * self.cost.ragged(self.depths[choice]) / tokens
        return deepest, time


def _members(batch: IntArray) -> Iterator[tuple[int, IntArray]]:
    order = np.argsort(batch, kind="stable")
    cuts = np.cumsum(np.bincount(batch))[:-1]
    yield from enumerate(np.split(order, cuts))


def _gaps(sums: FloatArray, time_se: ArrayLike | None, resampling: Resampling) -> FloatArray:
    """Mean over combinations of the three gaps: (1 + draws, 3) from (1 + draws, combinations, 1 + levels, depths)."""
    draws, depths = len(sums), sums.shape[-1]
    spread = np.zeros(depths) if time_se is None else np.asarray(time_se, float)
    noise = np.random.default_rng([resampling.seed, 1]).normal(size=(draws, depths)) * spread
    # Row 0 is the observed value; choices stay those made at the measured times.
    noise[0] = 0.0
    weight, time = sums[:, :, 0].sum(axis=-1), (sums[:, :, 1:] * np.exp(noise)[:, None, None]).sum(axis=-1)
    throughput = quotient(weight[..., None], time)
    gaps: FloatArray = (quotient(throughput[..., 1:], throughput[..., :-1]) - 1).mean(axis=1)
    return gaps


def _estimate(draws: FloatArray, batches: int, *, lone: bool) -> Estimate:
    if not np.isfinite(draws).all():
        return Estimate.missing("a fold of batches emitted nothing", n=batches, method=METHOD)
    if lone:
        return Estimate.bare(float(draws[0]), n=batches, method=METHOD, reason=LONE_BATCH)
    lo, hi = np.quantile(draws[1:], [0.05, 0.95]).tolist()
    return Estimate(float(draws[0]), Interval(lo, hi, 0.90), batches, METHOD)
