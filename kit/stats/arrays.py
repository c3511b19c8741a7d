"""The array types of this package and the few conversions that every estimator needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kit.stats.errors import StatsError

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "finite",
    "histogram_matrix",
    "optional",
    "quotient",
    "same_length",
    "tails",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

# A total up to here is exact as a float, and 512 requests of it still fit 64 bits.
MOST_ROUNDS: Final = 2**53
# Its square is still a float.
LARGEST: Final = 1e150


def histogram_matrix(hs: Iterable[Sequence[int]], *, K: int) -> IntArray:
    """Histograms of accepted drafts as an array (requests, K+1), padded with zeros.

    The server grows its list on demand, so a list may be shorter than K+1; mass beyond K raises StatsError.
    """
    if K < 0:
        raise StatsError(f"depth K={K} is negative; give the number of drafts per round")
    rows = [_padded(h, K) for h in hs]
    return np.array(rows, dtype=np.int64).reshape(len(rows), K + 1)


def _padded(h: Sequence[int], K: int) -> list[int]:
    if any(h[K + 1 :]):
        raise StatsError(f"histogram {list(h)} has mass beyond K={K}; the capture is not at the depth it claims")
    if any(not count >= 0 for count in h):
        raise StatsError(f"histogram {list(h)} has a negative or missing count; drop the request")
    if any(count % 1 for count in h) or sum(h) > MOST_ROUNDS:
        raise StatsError(f"histogram {list(h)} is not one of whole rounds, {MOST_ROUNDS} at most; drop the request")
    return [*h[: K + 1], *([0] * (K + 1 - len(h)))]


def tails(h: NDArray[Any]) -> NDArray[Any]:
    """Counts of j >= k for k = 0..K, along the last axis; entry 0 is the number of rounds."""
    reversed_sum: NDArray[Any] = np.cumsum(h[..., ::-1], axis=-1)[..., ::-1]
    return reversed_sum


def quotient(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Elementwise ratio that is NaN, silently, where the denominator is 0; callers turn NaN into a reason."""
    over, under = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    ratio = np.full(over.shape, np.nan)
    np.divide(over, under, out=ratio, where=under != 0)
    return ratio


def optional(values: FloatArray) -> list[float | None]:
    """Plain numbers, with None where an entry is undefined (NaN)."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def finite(**arrays: ArrayLike) -> None:
    """StatsError, naming the first array that holds a value that is no number."""
    for name, values in arrays.items():
        data = np.asarray(values, float)
        wrong = data[~(np.abs(data) <= LARGEST)]
        if wrong.size:
            raise StatsError(f"{name} holds {wrong[0]}, which is no measured number; leave the unit out")


def same_length(**arrays: NDArray[Any]) -> int:
    """The common first dimension, or StatsError naming the arrays that disagree."""
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise StatsError(f"arrays of one entry per unit differ in length: {lengths}")
    return next(iter(lengths.values()))
