"""Intervals for ratios whose rounds are dependent: the cluster is the prompt, the strata are workload classes.

Two routes (method 1.5). The linearised one treats p = sum x / sum n as a mean of residuals e_i = x_i - p n_i and
uses a t quantile with prompts - strata degrees of freedom; it holds its level from 24 prompts on. The bootstrap
resamples prompts inside strata. Every statistic it serves is a function of column sums, so a draw is a row of
resampling weights times the matrix of per-prompt columns, and whatever belongs to one prompt moves together. A share
has its interval on the logit scale, which cannot leave [0, 1] however few the prompts (Newcombe 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from kit.stats.arrays import FloatArray, IntArray, finite, quotient, same_length
from kit.stats.estimate import Estimate, Interval

__all__ = [
    "NO_SPREAD",
    "UNANIMOUS",
    "PairedDiff",
    "RatioSe",
    "Resampling",
    "linearised_se",
    "mean_interval",
    "no_interval_reason",
    "no_spread",
    "paired_ratio_diff",
    "percentile_interval",
    "ratio_bootstrap",
    "ratio_interval",
    "ratio_intervals",
    "ratio_residuals",
    "ratio_se",
    "resampled_sums",
    "share_interval",
    "share_intervals",
    "stratum_codes",
    "unseen_share",
]

# Weights of one chunk of draws: 4M entries are 32 MB, whatever the number of prompts.
CHUNK_ENTRIES: Final = 4_000_000
# Above this a stratum's prompts are dealt into that many groups, which are resampled instead (random groups, Wolter
# 2007): their spread estimates the same variance to 1 / sqrt(2 x 4000), 1.1 %, less than 2000 draws leave open.
MOST_CLUSTERS: Final = 4_000
LINEARISED: Final = "stratified cluster-linearised t over prompts"
LOGIT: Final = "stratified cluster-linearised t over prompts, logit scale"
UNANIMOUS: Final = "no prompt of n differs: 1 - (alpha/2)^(1/n)"
# Rounding leaves dust where values are equal.
NO_SPREAD: Final = 1e-12
ALL_ALIKE: Final = "all prompts are alike: their spread says nothing"
BOOTSTRAP: Final = "stratified cluster bootstrap over prompts"


class RatioSe(TypedDict):
    """A pooled ratio, its cluster-robust standard error and the number of clusters."""

    p: float | None
    se: float | None
    clusters: int


class PairedDiff(TypedDict):
    """The difference of two pooled ratios over the same clusters, with its standard error."""

    diff: float | None
    se: float | None


@dataclass(frozen=True, slots=True)
class Resampling:
    """How a bootstrap draws: the seed is part of the experiment and is stored with the result."""

    seed: int
    draws: int = 2000


def stratum_codes(strata: ArrayLike | None, *, clusters: int) -> IntArray:
    """Stratum of each cluster as 0..s-1; without strata everything is one stratum."""
    if strata is None:
        return np.zeros(clusters, dtype=np.int64)
    labels = np.asarray(strata)
    same_length(strata=labels, clusters=np.empty(clusters))
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def ratio_residuals(x: FloatArray, n: FloatArray) -> FloatArray:
    """Linearised contribution of each cluster to sum x / sum n: (x_i - p n_i) / sum n; columns are independent."""
    total = n.sum(axis=0)
    residuals: FloatArray = quotient(x - quotient(x.sum(axis=0), total) * n, total)
    return residuals


def linearised_se(e: FloatArray, *, codes: IntArray) -> FloatArray:
    """Standard error of sum e_i for cluster contributions e (clusters, m), stratified; NaN with a lone cluster."""
    counts = np.bincount(codes).astype(float)
    member = np.equal.outer(np.arange(len(counts)), codes).astype(float)
    spread = e - (member @ e / counts[:, None])[codes]
    scale = quotient(counts, counts - 1)
    error: FloatArray = np.sqrt((scale[:, None] * (member @ spread**2)).sum(axis=0))
    return error


def ratio_se(x: ArrayLike, *, n: ArrayLike, strata: ArrayLike | None = None) -> RatioSe:
    """Pooled ratio and cluster-robust standard error (method 1.5); None where it does not exist."""
    over, under = np.asarray(x, float), np.asarray(n, float)
    finite(x=over, n=under)
    clusters = same_length(x=over, n=under)
    if under.sum() == 0:
        return RatioSe(p=None, se=None, clusters=clusters)
    residuals = ratio_residuals(over, under)[:, None]
    se = linearised_se(residuals, codes=stratum_codes(strata, clusters=clusters))[0]
    return RatioSe(p=float(over.sum() / under.sum()), se=_or_none(se), clusters=clusters)


def paired_ratio_diff(
    xa: ArrayLike, *, na: ArrayLike, xb: ArrayLike, nb: ArrayLike, strata: ArrayLike | None = None
) -> PairedDiff:
    """sum xa / sum na - sum xb / sum nb over the same clusters; their covariance is kept (method 2.1)."""
    arrays = {"xa": xa, "na": na, "xb": xb, "nb": nb}
    finite(**arrays)
    over_a, under_a, over_b, under_b = (np.asarray(values, float) for values in arrays.values())
    clusters = same_length(xa=over_a, na=under_a, xb=over_b, nb=under_b)
    if under_a.sum() == 0 or under_b.sum() == 0:
        return PairedDiff(diff=None, se=None)
    e = ratio_residuals(over_a, under_a) - ratio_residuals(over_b, under_b)
    se = linearised_se(e[:, None], codes=stratum_codes(strata, clusters=clusters))[0]
    diff = over_a.sum() / under_a.sum() - over_b.sum() / under_b.sum()
    return PairedDiff(diff=float(diff), se=_or_none(se))


def ratio_interval(x: ArrayLike, *, n: ArrayLike, strata: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Pooled ratio of per-prompt counts x, n (prompts,) with its linearised t interval."""
    over, under = (np.asarray(values, float)[:, None] for values in (x, n))
    found = ratio_intervals(over, n=under, strata=strata, level=level)[0]
    if found.point is not None and found.interval is not None and no_spread([found.interval.lo, found.interval.hi]):
        return Estimate.bare(found.point, n=found.n, method=found.method, reason=ALL_ALIKE)
    return found


def ratio_intervals(
    x: FloatArray, *, n: FloatArray, strata: ArrayLike | None = None, level: float = 0.95
) -> tuple[Estimate, ...]:
    """One pooled ratio per column of x and n, both (prompts, m)."""
    finite(x=x, n=n)
    clusters = same_length(x=x, n=n)
    codes = stratum_codes(strata, clusters=clusters)
    points = quotient(x.sum(axis=0), n.sum(axis=0))
    errors = linearised_se(ratio_residuals(x, n), codes=codes) if clusters else np.full(len(points), np.nan)
    columns = (points, errors, *_at_risk(n, codes))
    return tuple(
        _t_estimate(point, se, clusters=prompts, freedom=prompts - groups, level=level)
        for point, se, prompts, groups in zip(*(column.tolist() for column in columns), strict=True)
    )


def _at_risk(n: FloatArray, codes: IntArray) -> tuple[IntArray, IntArray]:
    """Per column, the prompts that counted anything and their strata: the others know nothing of the ratio."""
    at_risk = n > 0
    by_stratum = np.equal.outer(np.unique(codes), codes).astype(float) @ at_risk
    return at_risk.sum(axis=0), (by_stratum > 0).sum(axis=0)


def _t_estimate(point: float, se: float, *, clusters: int, freedom: int, level: float) -> Estimate:
    if np.isnan(point):
        return Estimate.missing("nothing was counted", n=clusters, method=LINEARISED)
    if np.isnan(se) or freedom < 1:
        reason = f"{clusters} prompts leave a stratum with fewer than two: its spread is unknown"
        return Estimate.bare(point, n=clusters, method=LINEARISED, reason=reason)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * se
    return Estimate(point, Interval(point - half, point + half, level), clusters, LINEARISED)


def share_interval(x: ArrayLike, *, n: ArrayLike, strata: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Share of per-prompt counts x among n, 0 <= x <= n, both (prompts,)."""
    over, under = (np.asarray(counts, float)[:, None] for counts in (x, n))
    return share_intervals(over, n=under, strata=strata, level=level)[0]


def share_intervals(
    x: FloatArray, *, n: FloatArray, strata: ArrayLike | None = None, level: float = 0.95
) -> tuple[Estimate, ...]:
    """One share per column of counts x among n, 0 <= x <= n, both (prompts, m); intervals stay inside [0, 1]."""
    return tuple(_on_logit_scale(share) for share in ratio_intervals(x, n=n, strata=strata, level=level))


def _on_logit_scale(share: Estimate) -> Estimate:
    """The same half-width, carried to the log odds by the delta method.

    Prompts that all have one share have a spread of 0, which says nothing: their agreement bounds the share, as in
    method 2.3.
    """
    if share.point is None or share.interval is None:
        return share
    p, level = share.point, share.interval.level
    if p <= 0.0 or p >= 1.0 or no_spread([share.interval.lo, share.interval.hi]):
        unseen = unseen_share(share.n, alpha=(1 - level) / 2)
        return Estimate(p, Interval(max(p - unseen, 0.0), min(p + unseen, 1.0), level), share.n, UNANIMOUS)
    half = (share.interval.hi - share.interval.lo) / 2 / (p * (1 - p))
    lo, hi = special.expit(special.logit(p) + np.array([-half, half])).tolist()
    return Estimate(p, Interval(min(lo, p), max(hi, p), level), share.n, LOGIT)


def unseen_share(prompts: int, *, alpha: float) -> float:
    """Largest share of prompts that may differ, one-sided at alpha, when none of `prompts` does: 1 - alpha^(1/n)."""
    return 1 - float(alpha ** (1 / prompts))


def no_spread(values: ArrayLike) -> bool:
    """Whether the values are one value but for rounding."""
    data = np.asarray(values, float)
    return float(np.ptp(data)) <= NO_SPREAD * max(1.0, float(np.abs(data).max()))


def mean_interval(values: ArrayLike, *, strata: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Mean over clusters with equal weight, e.g. of per-request rates (the macro average)."""
    data = np.asarray(values, float)
    return ratio_interval(data, n=np.ones(len(data)), strata=strata, level=level)


def resampled_sums(columns: ArrayLike, *, resampling: Resampling, strata: ArrayLike | None = None) -> FloatArray:
    """Column sums (draws, m) of `columns` (prompts, m) when prompts are resampled inside strata.

    Rows are put into a canonical order first, so the order in which requests were stored cannot move an interval.
    """
    data = np.asarray(columns, float)
    codes = stratum_codes(strata, clusters=len(data))
    order = np.lexsort((*data.T[::-1], codes))
    data, codes = data[order], codes[order]
    rng = np.random.default_rng(resampling.seed)
    sums = np.zeros((resampling.draws, data.shape[1]))
    for code in np.unique(codes):
        _add_draws(sums, _groups(data[codes == code], rng), rng)
    return sums


def _groups(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows of one stratum as they are, or dealt at random into groups of equal size and added up."""
    if len(rows) <= MOST_CLUSTERS:
        return rows
    group = np.arange(len(rows))[rng.permutation(len(rows))] % MOST_CLUSTERS
    summed: FloatArray = np.stack([np.bincount(group, column) for column in rows.T], axis=1)
    return summed


def _add_draws(sums: FloatArray, rows: FloatArray, rng: np.random.Generator) -> None:
    size = len(rows)
    step = max(1, CHUNK_ENTRIES // size)
    for first in range(0, len(sums), step):
        part = sums[first : first + step]
        # Counting uniform picks is the multinomial, an order of magnitude faster than drawing it as such.
        picks = rng.integers(0, size, (len(part), size)) + size * np.arange(len(part))[:, None]
        weights = np.bincount(picks.ravel(), minlength=len(part) * size).reshape(len(part), size)
        part += weights @ rows


def percentile_interval(draws: FloatArray, *, level: float) -> Interval | None:
    """Percentile interval of bootstrap draws; None when a draw is undefined or no draw differs from another."""
    if not len(draws) or not np.isfinite(draws).all() or no_spread(draws):
        return None
    lo, hi = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(lo, hi, level)


def no_interval_reason(draws: FloatArray, undefined: str) -> str:
    """Why `percentile_interval` gives none: `undefined`, or draws that are all alike."""
    return ALL_ALIKE if len(draws) and np.isfinite(draws).all() else undefined


def ratio_bootstrap(
    x: ArrayLike,
    *,
    n: ArrayLike,
    resampling: Resampling,
    strata: ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Pooled ratio with the percentile interval of the stratified cluster bootstrap (from 40 prompts on)."""
    over, under = np.asarray(x, float), np.asarray(n, float)
    finite(x=over, n=under)
    same_length(x=over, n=under)
    columns = np.stack([over, under], axis=1)
    total_x, total_n = columns.sum(axis=0).tolist()
    if total_n == 0:
        return Estimate.missing("nothing was counted", n=len(columns), method=BOOTSTRAP)
    sums = resampled_sums(columns, resampling=resampling, strata=strata)
    draws = quotient(sums[:, 0], sums[:, 1])
    interval = percentile_interval(draws, level=level)
    reason = None if interval else no_interval_reason(draws, "some resamples counted nothing")
    return Estimate(total_x / total_n, interval, len(columns), BOOTSTRAP, reason)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
