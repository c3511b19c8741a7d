"""Ratios of throughput between arms, paired inside blocks of launches, on the log scale (method 5.2, 5.5)."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.arrays import FloatArray, same_length
from kit.stats.errors import StatsError

__all__ = ["RatioInterval", "crossover", "log_ratio_ci"]


class RatioInterval(TypedDict):
    """A ratio a / b and its interval; the ends are None with fewer than two blocks."""

    ratio: float | None
    lo: float | None
    hi: float | None


def log_ratio_ci(a: ArrayLike, *, b: ArrayLike, level: float = 0.95) -> RatioInterval:
    """Geometric mean of a / b over paired blocks with the t interval of the log ratio."""
    d = log_ratios(a, b)
    if not len(d):
        return RatioInterval(ratio=None, lo=None, hi=None)
    mean = float(d.mean())
    if len(d) < 2:
        return RatioInterval(ratio=float(np.exp(mean)), lo=None, hi=None)
    half = float(stats.t.ppf((1 + level) / 2, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)))
    return RatioInterval(ratio=float(np.exp(mean)), lo=float(np.exp(mean - half)), hi=float(np.exp(mean + half)))


def log_ratios(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """log(a / b) per block; throughputs must be positive."""
    over, under = np.asarray(a, float), np.asarray(b, float)
    same_length(a=over, b=under)
    if (over <= 0).any() or (under <= 0).any():
        raise StatsError("a throughput is not positive; leave the cell out instead")
    difference: FloatArray = np.log(over) - np.log(under)
    return difference


def crossover(C: ArrayLike, *, ratio: ArrayLike) -> float | None:
    """First concurrency at which the ratio crosses 1, log ratio interpolated linearly in log C; None if it does not."""
    levels, logs = np.log(np.asarray(C, float)), np.log(np.asarray(ratio, float))
    same_length(C=levels, ratio=logs)
    order = np.argsort(levels)
    levels, logs = levels[order], logs[order]
    exact = np.flatnonzero(logs == 0)
    changes = np.flatnonzero(logs[:-1] * logs[1:] < 0)
    first = int(min([*exact, *changes], default=-1))
    if first < 0:
        return None
    if logs[first] == 0:
        return float(np.exp(levels[first]))
    share = logs[first] / (logs[first] - logs[first + 1])
    return float(np.exp(levels[first] + share * (levels[first + 1] - levels[first])))
