"""How much requests differ, and whether a request's curve is its own (method 7).

Spread between requests is a variance component, not the sd of request means, which holds sampling noise. "The curve
belongs to the request" is tested on disjoint contiguous halves of the text: the same text at two depths shares its
realisation and correlates at 0.86 even when requests are identical.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import FloatArray, IntArray, finite, quotient, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate
from kit.stats.intervals import Resampling, no_interval_reason, percentile_interval, resampled_sums, stratum_codes
from kit.stats.rounds import Rounds

__all__ = [
    "Halves",
    "Icc",
    "Ownership",
    "Spread",
    "class_ratio",
    "halves",
    "icc1",
    "ownership",
    "spearman_brown",
    "split_half",
    "spread",
    "spread_within",
]

METHOD: Final = "stratified cluster bootstrap over prompts"
BATCHES: Final = "one-way random effects within batches; bootstrap over batches"
RELIABLE: Final = 0.8
RELIABLE_LOWER: Final = 0.7


class Icc(TypedDict):
    """One-way random effects: intraclass correlation and its parts; None without two groups and a repeat."""

    icc: float | None
    var_between: float | None
    var_within: float | None
    n0: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread of accepted drafts per round between requests: sd is sqrt(var_between), share is the ICC."""

    sd_between: Estimate
    icc: Estimate


@dataclass(frozen=True, slots=True)
class Halves:
    """Share of rounds accepting position k in either half of each text, (prompts,); NaN without rounds."""

    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, slots=True)
class Ownership:
    """Spearman-Brown reliabilities over disjoint halves: of each depth, across depths, and across depths within class.

    `disattenuated` is the cross-depth correlation over the geometric mean of the two half correlations.
    """

    depth_a: Estimate
    depth_b: Estimate
    across: Estimate
    disattenuated: Estimate
    across_within_class: Estimate

    @property
    def belongs_to_request(self) -> bool:
        """Whether the claim is allowed: 0.8 or more with a lower limit of 0.7 or more."""
        point, interval = self.across.point, self.across.interval
        return point is not None and interval is not None and point >= RELIABLE and interval.lo >= RELIABLE_LOWER


def icc1(groups: Sequence[ArrayLike]) -> Icc:
    """Intraclass correlation of unbalanced groups of values, negative variance clipped to 0."""
    values = [np.asarray(group, float) for group in groups if np.size(group)]
    if not values:
        return Icc(icc=None, var_between=None, var_within=None, n0=None)
    together = np.concatenate(values)
    finite(groups=together)
    # Variances do not see a shift, but the difference of two huge sums of squares does. A whole one keeps counts exact.
    values = [v - np.rint(together.mean()) for v in values]
    moments = np.array([_moments(len(v), v.sum(), (v**2).sum()) for v in values])
    signed, within, n0 = (float(part) for part in _components(moments.sum(axis=0)))
    between = float(np.maximum(signed, 0.0))
    if np.isnan(between):
        return Icc(icc=None, var_between=None, var_within=None, n0=None)
    total = between + within
    return Icc(icc=between / total if total else None, var_between=between, var_within=within, n0=n0)


def _moments(n: float, total: float, square: float) -> tuple[float, ...]:
    return 1.0, n, n * n, total, total * total / n, square


def _components(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Between and within variance and n0 from summed (groups, n, n^2, s, s^2/n, q) along the last axis."""
    groups, n, n_square, total, between, square = np.moveaxis(sums, -1, 0)
    n0 = quotient(n - quotient(n_square, n), groups - 1)
    ms_between = quotient(between - quotient(total**2, n), groups - 1)
    ms_within = quotient(square - between, n - groups)
    # Negative where rounds agree by chance more than independence allows; whoever reports it reports 0.
    return quotient(ms_between - ms_within, n0), ms_within, n0


def spread(hists: IntArray, *, resampling: Resampling, strata: ArrayLike | None = None) -> Spread:
    """Spread of accepted drafts between requests from histograms (prompts, K+1), with bootstrap intervals.

    For the spread inside one batch pass the rows of that batch.
    """
    present = hists.any(axis=1)
    h = hists[present].astype(float)
    kept = None if strata is None else np.asarray(strata)[present]
    columns = _moment_columns(h)
    sums = np.vstack([columns.sum(axis=0), resampled_sums(columns, resampling=resampling, strata=kept)])
    signed, within, _ = _components(sums)
    between = np.maximum(signed, 0.0)
    return Spread(
        sd_between=_drawn(np.sqrt(between), len(h), "fewer than two requests with a repeated round"),
        icc=_drawn(quotient(between, between + within), len(h), "accepted drafts do not vary"),
    )


def _moment_columns(h: FloatArray) -> FloatArray:
    """What `_components` needs of each request, (requests, 6), from histograms without empty rows."""
    j = np.arange(h.shape[1])
    n, total, square = h.sum(axis=1), h @ j, h @ j**2
    return np.stack([np.ones(len(h)), n, n**2, total, quotient(total**2, n), square], axis=1)


def spread_within(hists: IntArray, *, batch: IntArray, resampling: Resampling) -> Estimate:
    """Spread of accepted drafts between the requests of one batch (sd), averaged over batches as a variance.

    hists (requests, K+1), batch (requests,) codes from 0; the interval resamples batches.
    """
    present = hists.any(axis=1)
    columns, owner = _moment_columns(hists[present].astype(float)), batch[present]
    sums: FloatArray = np.stack([np.bincount(owner, column) for column in columns.T], axis=1).astype(float)
    signed = _components(sums)[0]
    known = signed[~np.isnan(signed)]
    pairs = np.stack([known, np.ones(len(known))], axis=1)
    if not len(known):
        return Estimate.missing("no batch has two requests with a repeated round", method=BATCHES)
    drawn = np.vstack([pairs.sum(axis=0), resampled_sums(pairs, resampling=resampling)])
    spreads = np.sqrt(np.maximum(drawn[:, 0] / drawn[:, 1], 0.0))
    interval = percentile_interval(spreads[1:], level=0.95)
    reason = None if interval else "all batches are alike: their spread says nothing"
    return Estimate(float(spreads[0]), interval, len(known), BATCHES, reason)


def _drawn(values: FloatArray, n: int, reason: str) -> Estimate:
    """Entry 0 is the point, the rest are bootstrap draws."""
    if np.isnan(values[0]):
        return Estimate.missing(reason, n=n, method=METHOD)
    interval = percentile_interval(values[1:], level=0.95)
    missing = None if interval else no_interval_reason(values[1:], f"in some resamples: {reason}")
    return Estimate(float(values[0]), interval, n, METHOD, missing)


def class_ratio(
    hists: IntArray, *, classes: ArrayLike, over: object, under: object, resampling: Resampling
) -> Estimate:
    """Mean accepted drafts per round of class `over` divided by that of class `under`, from (prompts, K+1)."""
    labels = np.asarray(classes)
    same_length(hists=hists, classes=labels)
    counts = np.stack([hists @ np.arange(hists.shape[1]), hists.sum(axis=1)], axis=1)
    columns = np.hstack([counts * (labels == name)[:, None] for name in (over, under)])
    sums = np.vstack([columns.sum(axis=0), resampled_sums(columns, resampling=resampling, strata=labels)])
    ratio = quotient(quotient(sums[:, 0], sums[:, 1]), quotient(sums[:, 2], sums[:, 3]))
    return _drawn(ratio, len(hists), "a class has no rounds or accepts nothing")


def spearman_brown(r: float) -> float:
    """Reliability of the whole from the correlation of its halves, 2 r / (1 + r)."""
    if not -1 < r <= 1:
        raise StatsError(f"correlation {r} is outside (-1, 1]; check that both halves vary")
    return 2 * r / (1 + r)


def halves(rounds: Rounds, *, text_tokens: ArrayLike, prompts: int, k: int = 1) -> Halves:
    """Acceptance of position k before and after the middle of each text; text_tokens (prompts,) are output lengths."""
    length = np.asarray(text_tokens, float)
    same_length(prompts=np.empty(prompts), text_tokens=length)
    late = rounds.starts() > length[rounds.prompt] / 2
    cell = 2 * rounds.prompt + late
    counts = np.bincount(cell, minlength=2 * prompts).reshape(prompts, 2)
    taken = np.bincount(cell, rounds.accepted >= k, minlength=2 * prompts).reshape(prompts, 2)
    first, second = quotient(taken, counts).T
    return Halves(first, second)


def split_half(parts: Halves, *, resampling: Resampling, strata: ArrayLike | None = None) -> Estimate:
    """Spearman-Brown reliability of one depth over disjoint halves."""
    table = _CorrelationTable.of([parts], strata, resampling)
    return table.estimate(lambda r: _corrected(r[..., 0, 1]), within=False)


def ownership(a: Halves, *, b: Halves, resampling: Resampling, strata: ArrayLike | None = None) -> Ownership:
    """Whether a request's acceptance is stable over its text and over two depths; strata are the classes."""
    table = _CorrelationTable.of([a, b], strata, resampling)

    def across(r: FloatArray) -> FloatArray:
        return (r[..., 0, 3] + r[..., 1, 2]) / 2

    def disattenuated(r: FloatArray) -> FloatArray:
        product = r[..., 0, 1] * r[..., 2, 3]
        return quotient(across(r), np.sqrt(np.where(product > 0, product, np.nan)))

    return Ownership(
        depth_a=table.estimate(lambda r: _corrected(r[..., 0, 1]), within=False),
        depth_b=table.estimate(lambda r: _corrected(r[..., 2, 3]), within=False),
        across=table.estimate(lambda r: _corrected(across(r)), within=False),
        disattenuated=table.estimate(disattenuated, within=False),
        across_within_class=table.estimate(lambda r: _corrected(across(r)), within=True),
    )


def _corrected(r: FloatArray) -> FloatArray:
    return quotient(2 * r, 1 + r)


@dataclass(frozen=True, slots=True)
class _CorrelationTable:
    """Moments of v variables per class: row 0 observed, the rest resampled; (1 + draws, classes, 1 + v + v^2)."""

    moments: FloatArray
    variables: int
    prompts: int

    @classmethod
    def of(cls, parts: Sequence[Halves], strata: ArrayLike | None, resampling: Resampling) -> _CorrelationTable:
        values = np.stack([column for half in parts for column in (half.first, half.second)], axis=1)
        complete = ~np.isnan(values).any(axis=1)
        codes = stratum_codes(strata, clusters=len(values))[complete]
        values = values[complete]
        classes = int(codes.max(initial=0)) + 1
        products = (values[:, :, None] * values[:, None, :]).reshape(len(values), values.shape[1] ** 2)
        rows = np.hstack([np.ones((len(values), 1)), values, products])
        by_class = rows[:, None, :] * np.equal.outer(codes, np.arange(classes))[..., None]
        flat = by_class.reshape(len(rows), classes * rows.shape[1])
        sums = np.vstack([flat.sum(axis=0), resampled_sums(flat, resampling=resampling, strata=codes)])
        return cls(sums.reshape(len(sums), classes, -1), values.shape[1], len(values))

    def estimate(self, statistic: Callable[[FloatArray], FloatArray], *, within: bool) -> Estimate:
        return _drawn(statistic(self._correlations(within)), self.prompts, "a half does not vary between requests")

    def _correlations(self, within: bool) -> FloatArray:
        table = self.moments if within else self.moments.sum(axis=1, keepdims=True)
        v = self.variables
        count, mean_sums = table[..., 0], table[..., 1 : 1 + v]
        cross = table[..., 1 + v :].reshape(*table.shape[:-1], v, v)
        outer = mean_sums[..., :, None] * mean_sums[..., None, :]
        scatter = (cross - np.nan_to_num(quotient(outer, count[..., None, None]))).sum(axis=1)
        variance = np.maximum(np.einsum("...ii->...i", scatter), 0.0)
        # Rounding leaves dust where a half is constant; it is no variance.
        variance = np.where(variance < 1e-12 * np.maximum(count.sum(axis=1), 1)[:, None], np.nan, variance)
        scale = np.sqrt(variance[..., :, None] * variance[..., None, :])
        return quotient(scatter, scale)
