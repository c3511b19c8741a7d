"""Proves the load generator's limits on the present machine, before anything depends on them.

The generator is set against a server whose times are known, in both patterns and at a small and a large level; every
figure is held against its limit. On a host where this fails, cells of that size measure the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kit.load.loop import run
from kit.load.metronome import Beat, Pattern, started
from kit.load.trial import Figures, attempt, medians, own

__all__ = ["LEVELS", "LoadCheck", "check_load"]

LEVELS: Final = (32, 250)
MIN_FRACTION_OF_IDEAL: Final = 0.99
MAX_TTFT_ERROR_MS: Final = 0.5
MAX_TTFT_ERROR_P99_MS: Final = 2.0


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """One level in one pattern: medians over `windows`, and in words each limit that does not hold."""

    pattern: Pattern
    streams: int
    windows: int
    figures: Figures
    misses: tuple[str, ...]


def check_load(*, levels: Sequence[int] = LEVELS, rounds: int = 3, windows: int = 3) -> Iterator[LoadCheck]:
    """Measure every level in both patterns: `windows` times `rounds` requests a stream of 64 chunks, 20 ms apart.

    Takes about 4 s a window. Raises ServerError when the timed server does not start.
    """
    for streams in levels:
        for pattern in Pattern:
            beat = Beat(pattern)
            with started(beat) as url:
                found = [run(attempt(own, url, beat, streams=streams, rounds=rounds)) for _ in range(windows)]
            figures = medians(found)
            yield LoadCheck(pattern, streams, windows, figures, tuple(missed(figures)))


def missed(figures: Figures) -> Iterator[str]:
    """Which limits do not hold, with the value found."""
    if figures.fraction_of_ideal < MIN_FRACTION_OF_IDEAL:
        yield f"{figures.fraction_of_ideal:.1%} of the ideal rate; at least {MIN_FRACTION_OF_IDEAL:.0%} are needed"
    if figures.ttft_error_ms > MAX_TTFT_ERROR_MS:
        yield f"median TTFT error {figures.ttft_error_ms:.2f} ms; at most {MAX_TTFT_ERROR_MS:g} ms are allowed"
    if figures.ttft_error_p99_ms > MAX_TTFT_ERROR_P99_MS:
        yield f"TTFT error p99 {figures.ttft_error_p99_ms:.2f} ms; at most {MAX_TTFT_ERROR_P99_MS:g} ms are allowed"
