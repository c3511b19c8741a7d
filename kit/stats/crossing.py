"""Where the speed-up ends: the crossover, its confidence set, and the verdict over a sweep (method 5.5).

L(C) is the mean log ratio, linear in log C between levels. Its pointwise t interval is tested against 0 at every C;
between two levels the test statistic is a quadratic in the interpolation weight, so the set of C that are not
rejected is found exactly (test inversion, as Fieller's). It may be empty, in pieces, or reach an end of the sweep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.arrays import FloatArray, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval
from kit.stats.multiplicity import holm
from kit.stats.speedup import MIN_BLOCKS, LevelTest, RatioCurve, level_tests

__all__ = [
    "ConfidenceSet",
    "Crossover",
    "CrossoverKind",
    "SweepVerdict",
    "SweepWord",
    "crossover",
    "crossover_estimate",
    "crossover_set",
    "sweep_verdict",
]

METHOD: Final = "inversion of the pointwise t test of the log ratio, linear in log concurrency"
ALPHA: Final = 0.05


class CrossoverKind(StrEnum):
    """Whether the sweep shows a crossover, shows that there is none, or shows neither."""

    FOUND = "found"
    NONE_IN_RANGE = "none in range"
    INCONCLUSIVE = "inconclusive"


class SweepWord(StrEnum):
    """The verdict over all levels of a sweep."""

    BASELINE_DOMINATES = "BASELINE DOMINATES"
    EAGLE3_DOMINATES = "EAGLE3 DOMINATES"
    EAGLE3_WINS_UP_TO = "EAGLE3 WINS UP TO C*"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class ConfidenceSet:
    """Concurrencies at which a ratio of 1 is not rejected: disjoint ascending [lo, hi] pieces.

    `open_below` and `open_above` say that the set reaches that end of the sweep, so it has no limit there.
    """

    pieces: tuple[tuple[float, float], ...]
    open_below: bool
    open_above: bool
    level: float


@dataclass(frozen=True, slots=True)
class Crossover:
    """C* with the piece of the confidence set around it, the kind of answer, and the whole set."""

    kind: CrossoverKind
    at: Estimate
    confidence: ConfidenceSet


@dataclass(frozen=True, slots=True)
class SweepVerdict:
    """Verdict class, the crossover, the levels left open and every test behind it."""

    word: SweepWord
    crossover: Crossover
    undecided: tuple[float, ...]
    tests: tuple[LevelTest, ...]


def crossover(C: ArrayLike, *, ratio: ArrayLike) -> float | None:
    """First concurrency at which the ratio crosses 1, log ratio linear in log C; None if it does not cross."""
    points = np.asarray(C, float), np.asarray(ratio, float)
    same_length(C=points[0], ratio=points[1])
    if any(not ((values > 0) & (values < np.inf)).all() for values in points):
        raise StatsError("a concurrency or ratio is not positive and finite; leave the level out")
    levels, logs = np.log(points[0]), np.log(points[1])
    order = np.argsort(levels)
    levels, logs = levels[order], logs[order]
    exact = np.flatnonzero(logs == 0)
    changes = np.flatnonzero(logs[:-1] * logs[1:] < 0)
    first = min([*exact.tolist(), *changes.tolist()], default=None)
    if first is None:
        return None
    if logs[first] == 0:
        return float(np.exp(levels[first]))
    share = logs[first] / (logs[first] - logs[first + 1])
    return float(np.exp(levels[first] + share * (levels[first + 1] - levels[first])))


def crossover_set(curve: RatioCurve, *, level: float = 0.95) -> ConfidenceSet:
    """{C : the interval of L(C) contains 0}; a segment with fewer than three complete blocks excludes nothing."""
    logs = np.log(curve.concurrency)
    pieces: list[tuple[float, float]] = []
    for i in range(len(logs) - 1):
        for lo, hi in _not_rejected(curve.log_ratio[:, i : i + 2], level):
            span = logs[i + 1] - logs[i]
            pieces.append((float(logs[i] + lo * span), float(logs[i] + hi * span)))
    merged = _merged(pieces)
    return ConfidenceSet(
        pieces=tuple((math.exp(lo), math.exp(hi)) for lo, hi in merged),
        open_below=bool(merged) and math.isclose(merged[0][0], logs[0], abs_tol=1e-9),
        open_above=bool(merged) and math.isclose(merged[-1][1], logs[-1], abs_tol=1e-9),
        level=level,
    )


def _not_rejected(ends: FloatArray, level: float) -> list[tuple[float, float]]:
    """Weights w in [0, 1] at which mean((1-w) u + w v) = 0 is not rejected; ends holds u, v per block."""
    d = ends[~np.isnan(ends).any(axis=1)]
    if len(d) < MIN_BLOCKS:
        return [(0.0, 1.0)]
    critical = float(stats.t.ppf((1 + level) / 2, len(d) - 1)) ** 2 / len(d)
    start, step = d[:, 0], d[:, 1] - d[:, 0]
    cov = np.cov(start, step)
    # mean(w)^2 - critical var(w) <= 0, a quadratic in w
    quadratic = np.array(
        [
            step.mean() ** 2 - critical * cov[1, 1],
            2 * (start.mean() * step.mean() - critical * cov[0, 1]),
            start.mean() ** 2 - critical * cov[0, 0],
        ]
    )
    roots = np.roots(quadratic)
    inner = sorted(float(r.real) for r in roots if abs(r.imag) < 1e-9 and 0 <= r.real <= 1)
    cuts = [0.0, *inner, 1.0]
    spans = [(lo, hi) for lo, hi in pairwise(cuts) if np.polyval(quadratic, (lo + hi) / 2) <= 0]
    # Roots belong to the set themselves: without spread the whole set is one of them.
    return sorted([*spans, *((root, root) for root in inner)])


def _merged(pieces: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for lo, hi in pieces:
        if merged and lo <= merged[-1][1] + 1e-12:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return merged


def crossover_estimate(curve: RatioCurve, *, level: float = 0.95) -> Crossover:
    """C* of a sweep: found when its set is bounded, none in range when the set is empty, else inconclusive."""
    region = crossover_set(curve, level=level)
    present = ~np.isnan(curve.log_ratio)
    blocks = int(present.all(axis=1).sum())
    if len(curve.concurrency) < 2 or not present.any(axis=0).all():
        at = Estimate.missing("the sweep has fewer than two levels with a ratio", n=blocks, method=METHOD)
        return Crossover(CrossoverKind.INCONCLUSIVE, at, region)
    point = crossover(curve.concurrency, ratio=np.exp(np.nanmean(curve.log_ratio, axis=0)))
    if point is None:
        kind = CrossoverKind.INCONCLUSIVE if region.pieces else CrossoverKind.NONE_IN_RANGE
        at = Estimate.missing("the mean log ratio does not cross 0 in the sweep", n=blocks, method=METHOD)
        return Crossover(kind, at, region)
    interval, reason = _around(point, region)
    kind = CrossoverKind.FOUND if interval else CrossoverKind.INCONCLUSIVE
    return Crossover(kind, Estimate(point, interval, blocks, METHOD, reason), region)


def _around(point: float, region: ConfidenceSet) -> tuple[Interval | None, str | None]:
    """The piece of the set that holds the point, or why there is no bounded one."""
    for lo, hi in region.pieces:
        if lo * (1 - 1e-9) <= point <= hi * (1 + 1e-9):
            reason = _unbounded(region, lo, hi)
            return (None, reason) if reason else (Interval(lo, hi, region.level), None)
    # Blocks that lack one end of a segment count for the mean but not for the set.
    return None, "the set, from complete blocks only, does not hold the point"


def _unbounded(region: ConfidenceSet, lo: float, hi: float) -> str | None:
    below = region.open_below and lo == region.pieces[0][0]
    above = region.open_above and hi == region.pieces[-1][1]
    ends = [name for name, is_open in (("lower", below), ("upper", above)) if is_open]
    return f"the confidence set reaches the {' and '.join(ends)} end of the sweep" if ends else None


def sweep_verdict(curve: RatioCurve, *, noise_threshold: float = 0.0, alpha: float = ALPHA) -> SweepVerdict:
    """Verdict class over a sweep.

    Dominance is an intersection-union claim: each level rejects at one-sided alpha, uncorrected. A crossover is a
    union claim: Holm over levels, some level won, some lost, all won below all lost.
    """
    tests = level_tests(curve, noise_threshold=noise_threshold, level=1 - alpha)
    undecided = tuple(test.concurrency for test in tests if test.p_different >= alpha)
    word = _sweep_word(tests, alpha)
    return SweepVerdict(
        word=word,
        crossover=crossover_estimate(curve, level=1 - alpha),
        undecided=undecided if word is SweepWord.INCONCLUSIVE else (),
        tests=tests,
    )


def _sweep_word(tests: Sequence[LevelTest], alpha: float) -> SweepWord:
    # p-values are two-sided, so one-sided alpha is twice that.
    if tests and all(test.p_slower < 2 * alpha for test in tests):
        return SweepWord.BASELINE_DOMINATES
    if tests and all(test.p_faster < 2 * alpha for test in tests):
        return SweepWord.EAGLE3_DOMINATES
    adjusted = holm([test.p_different for test in tests])
    claimed = [test for test, p in zip(tests, adjusted, strict=True) if p < alpha]
    won = [test.concurrency for test in claimed if test.p_faster < test.p_slower]
    lost = [test.concurrency for test in claimed if test.p_slower < test.p_faster]
    return SweepWord.EAGLE3_WINS_UP_TO if won and lost and max(won) < min(lost) else SweepWord.INCONCLUSIVE
