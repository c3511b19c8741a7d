"""`make bench-load`: what a request costs and how true its times are, one JSON line a candidate and level.

Candidates take turns, window by window, so that a busy host disturbs them alike; the figures are medians over windows.
CPU moves by much between machines, so the goal is the ratio to a bare reader under uvloop in the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any, Final

from kit.load.metronome import Beat, Pattern, started
from kit.load.selfcheck import LEVELS, MAX_TTFT_ERROR_MS, MIN_FRACTION_OF_IDEAL
from kit.load.trial import Figures, medians
from tests.load.bench.candidates import CANDIDATES, CHOSEN, YARDSTICK, window

MAX_RATIO: Final = 1.7


def measured(beat: Beat, *, streams: int, rounds: int, windows: int) -> dict[str, list[Figures]]:
    """The windows of every candidate at one level. A process a window: what one leaves behind meets no other."""
    found: dict[str, list[Figures]] = {name: [] for name in CANDIDATES}
    with started(beat) as url:
        for _ in range(windows):
            for name, figures in found.items():
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                    figures.append(process.submit(window, name, url, beat, streams, rounds).result())
    return found


def rows(beat: Beat, *, streams: int, rounds: int, windows: int) -> Iterator[dict[str, Any]]:
    """The lines of one level."""
    found = {
        name: medians(each) for name, each in measured(beat, streams=streams, rounds=rounds, windows=windows).items()
    }
    for name, figures in found.items():
        values = {key: round(value, 3) for key, value in asdict(figures).items()}
        yield {
            "candidate": name,
            "chosen": name == CHOSEN,
            "pattern": beat.pattern,
            "streams": streams,
            "windows": windows,
            "ratio_to_bare": round(figures.cpu_ms_per_request / found[YARDSTICK].cpu_ms_per_request, 2),
            **values,
        }


def missed(row: dict[str, Any]) -> Iterator[str]:
    """Goals that the chosen candidate does not meet in this row."""
    if row["ratio_to_bare"] > MAX_RATIO:
        yield f"{row['ratio_to_bare']} times the CPU of a bare reader, more than {MAX_RATIO}"
    if row["fraction_of_ideal"] < MIN_FRACTION_OF_IDEAL:
        yield f"{row['fraction_of_ideal']:.1%} of the ideal rate, less than {MIN_FRACTION_OF_IDEAL:.0%}"
    if row["ttft_error_ms"] > MAX_TTFT_ERROR_MS:
        yield f"median TTFT error {row['ttft_error_ms']} ms, more than {MAX_TTFT_ERROR_MS}"


def main() -> int:
    """Print the lines on stdout, and on stderr each goal that the chosen candidate misses on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=list(LEVELS))
    parser.add_argument("--rounds", type=int, default=4, help="requests a stream and window")
    parser.add_argument("--windows", type=int, default=3)
    given = parser.parse_args()
    for streams in given.streams:
        for pattern in Pattern:
            for row in rows(Beat(pattern), streams=streams, rounds=given.rounds, windows=given.windows):
                print(json.dumps(row), flush=True)
                for goal in missed(row) if row["chosen"] else ():
                    print(f"goal missed at {streams} {pattern} streams: {goal}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
