"""Ratios of throughput between two arms, paired inside blocks of launches, on the log scale (method 5.2 and 5.5).

The unit is the block: launches of both arms that ran side by side. A word about speed tests the ratio against
1 -+ the noise threshold; a word about many arms and levels is Holm-adjusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.arrays import FloatArray, finite, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval
from kit.stats.multiplicity import holm

__all__ = [
    "LevelTest",
    "RatioCurve",
    "RatioInterval",
    "SpeedWord",
    "level_tests",
    "log_ratio_ci",
    "mean_over_blocks",
    "ratio_estimate",
    "relative_se",
    "speed_words",
]

MIN_BLOCKS: Final = 3
METHOD: Final = "t on the log ratio, paired over blocks of launches"


class RatioInterval(TypedDict):
    """A ratio a / b and its interval; the ends are None with fewer than two blocks."""

    ratio: float | None
    lo: float | None
    hi: float | None


class SpeedWord(StrEnum):
    """What may be said about an arm at one concurrency, given the noise threshold."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class RatioCurve:
    """log(arm / baseline) per block and concurrency, ascending in concurrency; NaN where a cell is missing."""

    concurrency: tuple[float, ...]
    log_ratio: FloatArray

    @classmethod
    def of(cls, concurrency: Sequence[float], *, arm: ArrayLike, baseline: ArrayLike) -> Self:
        """Curve from throughputs (blocks, levels); NaN marks a cell without a number."""
        levels = np.asarray(concurrency, float)
        finite(concurrency=levels)
        d = _log_ratio(np.asarray(arm, float), np.asarray(baseline, float))
        if d.ndim != 2 or d.shape[1] != len(levels) or len(np.unique(levels)) != len(levels) or (levels <= 0).any():
            raise StatsError(f"throughputs of shape {d.shape} do not match levels {levels.tolist()}, one column each")
        order = np.argsort(levels)
        return cls(tuple(levels[order].tolist()), d[:, order])


@dataclass(frozen=True, slots=True)
class LevelTest:
    """Ratio at one level with two-sided p-values of being faster, slower or equivalent beyond the noise threshold.

    A p of a two-sided 95 % interval lying wholly beyond (or inside) the threshold is below 0.05. Missing tests have
    p = 1 and a reason in `ratio`.
    """

    concurrency: float
    ratio: Estimate
    p_faster: float
    p_slower: float
    p_equivalent: float

    @property
    def p_different(self) -> float:
        """p of the ratio being on one side, whichever the data show."""
        return min(self.p_faster, self.p_slower)


def log_ratio_ci(a: ArrayLike, *, b: ArrayLike, level: float = 0.95) -> RatioInterval:
    """Geometric mean of a / b over paired blocks with the t interval of the log ratio."""
    d = _log_ratio(np.asarray(a, float), np.asarray(b, float))
    finite(log_ratio=d)
    if not len(d):
        return RatioInterval(ratio=None, lo=None, hi=None)
    mean = float(d.mean())
    interval = Interval(mean - _half_width(d, level), mean + _half_width(d, level), level) if len(d) > 1 else None
    found = Estimate(mean, interval, len(d), METHOD, None if interval else "one block").mapped(math.exp)
    ends = (found.interval.lo, found.interval.hi) if found.interval else (None, None)
    return RatioInterval(ratio=found.point, lo=ends[0], hi=ends[1])


def ratio_estimate(a: ArrayLike, *, b: ArrayLike, level: float = 0.95) -> Estimate:
    """Ratio a / b over paired blocks, blocks with a NaN left out; fewer than three give no interval."""
    d = _log_ratio(np.asarray(a, float), np.asarray(b, float))
    return log_mean(d[~np.isnan(d)], level=level).mapped(math.exp)


def log_mean(d: FloatArray, *, level: float = 0.95) -> Estimate:
    """Mean of per-block logs with its t interval."""
    return mean_over_blocks(d, method=METHOD, level=level)


def mean_over_blocks(values: ArrayLike, *, method: str, level: float = 0.95) -> Estimate:
    """Mean of one value a block with its t interval; fewer than three blocks give none."""
    d = np.asarray(values, float)
    finite(values=d)
    if not len(d):
        return Estimate.missing("no block has both cells", method=method)
    mean = float(d.mean())
    if len(d) < MIN_BLOCKS:
        reason = f"{len(d)} of the {MIN_BLOCKS} blocks that an interval needs"
        return Estimate.bare(mean, n=len(d), method=method, reason=reason)
    half = _half_width(d, level)
    return Estimate(mean, Interval(mean - half, mean + half, level), len(d), method)


def relative_se(estimate: Estimate) -> float | None:
    """Standard error of the log behind a t interval over n blocks; None where there is no interval."""
    if estimate.interval is None or estimate.n < MIN_BLOCKS:
        return None
    half = math.log(estimate.interval.hi / estimate.interval.lo) / 2
    return half / float(stats.t.ppf((1 + estimate.interval.level) / 2, estimate.n - 1))


def _log_ratio(over: FloatArray, under: FloatArray) -> FloatArray:
    same_length(a=over, b=under)
    if any(((values <= 0) | np.isinf(values)).any() for values in (over, under)):
        raise StatsError("a throughput is not positive and finite; mark the cell as missing instead")
    difference: FloatArray = np.log(over) - np.log(under)
    return difference


def _half_width(d: FloatArray, level: float) -> float:
    return float(stats.t.ppf((1 + level) / 2, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))


def level_tests(curve: RatioCurve, *, noise_threshold: float = 0.0, level: float = 0.95) -> tuple[LevelTest, ...]:
    """One test per concurrency against 1 + threshold and 1 - threshold; `level` is that of the intervals."""
    if not 0 <= noise_threshold < 1:
        raise StatsError(f"noise threshold {noise_threshold} is not a share below 1; 2 % is 0.02")
    columns = (column[~np.isnan(column)] for column in curve.log_ratio.T)
    return tuple(_level_test(C, d, noise_threshold, level) for C, d in zip(curve.concurrency, columns, strict=True))


def _level_test(concurrency: float, d: FloatArray, threshold: float, level: float) -> LevelTest:
    ratio = log_mean(d, level=level).mapped(math.exp)
    if ratio.interval is None:
        return LevelTest(concurrency, ratio, 1.0, 1.0, 1.0)
    upper, lower = math.log1p(threshold), math.log1p(-threshold)
    inside = max(_p_above(upper - d), _p_above(d - lower))
    p_values = (_p_above(d - upper), _p_above(lower - d), inside)
    return LevelTest(concurrency, ratio, *(min(1.0, 2 * p) for p in p_values))


def _p_above(d: FloatArray) -> float:
    """One-sided t-test p of mean d > 0; blocks without spread decide by their mean alone."""
    mean, spread = float(d.mean()), float(d.std(ddof=1))
    # Simulated time repeats to the last digit; rounding dust is not a spread to divide by.
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return 0.0 if mean > 0 else 1.0
    return float(stats.t.sf(mean * math.sqrt(len(d)) / spread, len(d) - 1))


def speed_words(tests: Sequence[LevelTest], *, alpha: float = 0.05) -> tuple[SpeedWord, ...]:
    """A word per test; pass all arms and levels that are printed together, they are Holm-adjusted as one family.

    Differences and equivalences are two families: a level's truth lies in one of them only.
    """
    different = holm([test.p_different for test in tests])
    equivalent = holm([test.p_equivalent for test in tests])
    return tuple(_word(test, p < alpha, q < alpha) for test, p, q in zip(tests, different, equivalent, strict=True))


def _word(test: LevelTest, different: bool, equivalent: bool) -> SpeedWord:
    if different:
        return SpeedWord.FASTER if test.p_faster < test.p_slower else SpeedWord.SLOWER
    return SpeedWord.EQUIVALENT if equivalent else SpeedWord.INCONCLUSIVE
