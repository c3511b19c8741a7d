"""The candidates, and one window of one of them."""

from __future__ import annotations

import os
from typing import Final

import uvloop

from kit.load import run
from kit.load.metronome import Beat
from kit.load.trial import Figures, Sender, attempt, own
from tests.load.bench.peers import bare, httpx_per_worker

__all__ = ["CANDIDATES", "CHOSEN", "YARDSTICK", "window"]

CANDIDATES: Final[dict[str, Sender]] = {"bare uvloop": bare, "httpx per worker": httpx_per_worker, "own transport": own}
CHOSEN: Final = "own transport"
YARDSTICK: Final = "bare uvloop"


def window(name: str, url: str, beat: Beat, streams: int, rounds: int) -> Figures:
    """One window of a candidate, on the last core of this process."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    trial = attempt(CANDIDATES[name], url, beat, streams=streams, rounds=rounds)
    return uvloop.run(trial) if name == YARDSTICK else run(trial)
