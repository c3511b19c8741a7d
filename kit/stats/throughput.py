"""Throughput of one level in one launch, over the time in which the load was really at its level (method 5.1).

The window opens when C requests are first in flight and closes at the last departure from C. It is refused rather
than stretched: a level that was never reached, or that the client did not hold, has no throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import FloatArray, finite, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate
from kit.units import Seconds, TokensPerSecond

__all__ = ["SteadyWindow", "Window", "mser5", "throughput_window", "window"]

MIN_FULL_SHARE: Final = 0.98
MIN_COMPLETIONS_PER_WORKER: Final = 2
MSER_BATCH: Final = 5
METHOD: Final = "steady window"


class Window(TypedDict):
    """Window of one level: seconds, tokens in (t0, t1], tokens per second; None when C was never reached."""

    t0: Seconds | None
    t1: Seconds | None
    tokens: int
    tok_s: TokensPerSecond | None


@dataclass(frozen=True, slots=True)
class SteadyWindow:
    """The measured window of a cell; `throughput` carries the reason when the window is refused.

    `full_share` is the share of the window with exactly C requests in flight, `completions` those that ended in it.
    """

    start_s: Seconds | None
    end_s: Seconds | None
    tokens: int
    full_share: float
    completions: int
    throughput: Estimate


def window(inflight: Sequence[Sequence[float]], *, tokens: Sequence[Sequence[float]], C: int) -> Window:
    """Window and throughput from [start, end] pairs and [time, tokens] stamps, both in seconds."""
    spans = np.asarray(inflight, float).reshape(-1, 2)
    stamps = np.asarray(tokens, float).reshape(-1, 2)
    edges = _window_edges(*_occupancy(spans[:, 0], spans[:, 1]), C)
    if edges is None:
        return Window(t0=None, t1=None, tokens=0, tok_s=None)
    t0, t1 = edges
    count = _tokens_within(stamps[:, 0], stamps[:, 1], edges)
    return Window(t0=t0, t1=t1, tokens=count, tok_s=count / (t1 - t0) if t1 > t0 else None)


def throughput_window(
    starts: ArrayLike, *, ends: ArrayLike, token_times: ArrayLike, token_counts: ArrayLike, concurrency: int
) -> SteadyWindow:
    """Steady-state output throughput of one cell from request spans (requests,) and token stamps (stamps,).

    Times are seconds on one clock; `token_counts` is how many tokens arrived at each stamp. The point carries no
    interval: the unit of replication is the launch, and this is one.
    """
    begun, ended = np.asarray(starts, float), np.asarray(ends, float)
    stamps, counts = np.asarray(token_times, float), np.asarray(token_counts, float)
    same_length(starts=begun, ends=ended)
    same_length(token_times=stamps, token_counts=counts)
    times, level = _occupancy(begun, ended)
    edges = _window_edges(times, level, concurrency)
    if edges is None:
        never = Estimate.missing(f"concurrency {concurrency} was never reached", method=METHOD)
        return SteadyWindow(None, None, 0, 0.0, 0, never)
    t0, t1 = edges
    tokens = _tokens_within(stamps, counts, edges)
    full = _full_share(times, level, edges, concurrency)
    completions = int(((ended > t0) & (ended <= t1)).sum())
    reason = _refusal(full, completions, concurrency) or (None if tokens else "no token arrived in the window")
    return SteadyWindow(t0, t1, tokens, full, completions, _rate(tokens, t1 - t0, completions, reason))


def _occupancy(starts: FloatArray, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Event times and the number in flight from each event on; at one instant ends come before starts."""
    finite(starts=starts, ends=ends)
    if (ends < starts).any():
        raise StatsError("a request ends before it starts; check that both stamps are of one clock")
    times = np.concatenate([ends, starts])
    change = np.repeat([-1.0, 1.0], [len(ends), len(starts)])
    order = np.lexsort((change, times))
    return times[order], np.cumsum(change[order])


def _window_edges(times: FloatArray, level: FloatArray, concurrency: int) -> tuple[Seconds, Seconds] | None:
    if concurrency < 1:
        raise StatsError(f"concurrency {concurrency} is below 1; a window needs a load")
    full = np.flatnonzero(level >= concurrency)
    if not len(full):
        return None
    # The event after the last full one is the departure that ends it; the final event leaves nobody in flight.
    return float(times[full[0]]), float(times[full[-1] + 1])


def _tokens_within(stamps: FloatArray, counts: FloatArray, edges: tuple[Seconds, Seconds]) -> int:
    finite(token_times=stamps, token_counts=counts)
    return round(float(counts[(stamps > edges[0]) & (stamps <= edges[1])].sum()))


def _full_share(times: FloatArray, level: FloatArray, edges: tuple[Seconds, Seconds], concurrency: int) -> float:
    t0, t1 = edges
    if t1 <= t0:
        return 0.0
    spans = np.diff(np.clip(times, t0, t1))
    return float(spans[level[:-1] == concurrency].sum() / (t1 - t0))


def _refusal(full: float, completions: int, concurrency: int) -> str | None:
    if full < MIN_FULL_SHARE:
        return f"in flight = {concurrency} for {full:.1%} of the window, below {MIN_FULL_SHARE:.0%}: client gaps"
    needed = MIN_COMPLETIONS_PER_WORKER * concurrency
    if completions < needed:
        return f"{completions} completions in the window, fewer than {needed}: send more waves"
    return None


def _rate(tokens: int, duration_s: Seconds, completions: int, reason: str | None) -> Estimate:
    if reason is not None:
        return Estimate.missing(reason, n=completions, method=METHOD)
    return Estimate.bare(tokens / duration_s, n=1, method=METHOD, reason="one launch carries no interval")


def mser5(x: ArrayLike) -> int | None:
    """Observations that MSER-5 deletes: batches of 5, first minimum of var / size over the first half.

    White and Robinson's rule, here only a check that the window left the ramp out; None below one batch.
    """
    data = np.asarray(x, float)
    finite(x=data)
    batches = len(data) // MSER_BATCH
    if batches == 0:
        return None
    means = data[: batches * MSER_BATCH].reshape(batches, MSER_BATCH).mean(axis=1)
    left = np.arange(batches, 0, -1)
    total, square = np.cumsum(means[::-1])[::-1], np.cumsum(means[::-1] ** 2)[::-1]
    statistic = (square - total**2 / left) / left.astype(float) ** 2
    return MSER_BATCH * int(np.argmin(statistic[: batches // 2 + 1]))
