"""Whether the client could have produced a result by itself: what a cell stores of its own load generator."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kit.load.arrivals import WallClock
from kit.load.stream import Exchange
from kit.units import NS_PER_S, Seconds

__all__ = ["ClientHealth", "Watch"]

_LAG_PERIOD_S: Final = 0.05
_DESCRIPTORS: Final = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """The generator's self-check of one pass.

    `cpu_share` is that of this process in one core. `loop_lag_*` is how late the event loop woke a sleeper, at worst
    and in 99 of 100 cases. `send_late_*` is how long after it was due a request went out (due: when its slot became
    free, or by the schedule), and `idle_share` how much that is in all, against the time that requests were in flight.
    `stamps` says whose arrival stamps these are; `unstamped` counts reads with the event loop's, late by up to its lag.
    `clock_step_s` is by how much somebody set the clock meanwhile. `fd_headroom` is how many more files this process
    could have opened.
    """

    cpu_share: float
    loop_lag_s: Seconds
    loop_lag_p99_s: Seconds
    send_late_s: Seconds
    send_late_p99_s: Seconds
    idle_share: float
    stamps: str
    unstamped: int
    clock_step_s: Seconds
    connections: int
    fd_headroom: int
    received_bytes: int
    spooled_bytes: int


class Watch:
    """Observes one pass from its first request to its last answer."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self._lags: list[Seconds] = []
        self._due: Seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._started = time.monotonic()
        self._cpu = time.process_time()

    def lag(self) -> None:
        """Be called every so often, and note how late; until `stop`."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _LAG_PERIOD_S
        self._timer = loop.call_at(self._due, self._woken, loop)

    def _woken(self, loop: asyncio.AbstractEventLoop) -> None:
        self._lags.append(loop.time() - self._due)
        self.lag()

    def stop(self) -> None:
        """The pass is over."""
        if self._timer is not None:
            self._timer.cancel()

    def health(
        self,
        exchanges: Sequence[Exchange],
        *,
        connections: int,
        received_bytes: int,
        spooled_bytes: int,
    ) -> ClientHealth:
        """The verdict on the pass; call it while its connections are still open."""
        duration = max(time.monotonic() - self._started, 1e-9)
        cpu = time.process_time() - self._cpu
        flight = sum(each.ended_ns - each.sent_ns for each in exchanges) / NS_PER_S
        late = [(each.written_ns - each.due_ns) / NS_PER_S for each in exchanges if each.due_ns and each.written_ns]
        unstamped = sum(each.unstamped for each in exchanges)
        return ClientHealth(
            cpu_share=cpu / duration,
            loop_lag_s=max(self._lags, default=0.0),
            loop_lag_p99_s=_p99(self._lags),
            send_late_s=max(late, default=0.0),
            send_late_p99_s=_p99(late),
            idle_share=sum(late) / max(flight, 1e-9),
            stamps="event loop" if unstamped > sum(each.reads for each in exchanges) / 2 else "kernel",
            unstamped=unstamped,
            clock_step_s=abs(WallClock.now().offset_ns - self._clock.offset_ns) / NS_PER_S,
            connections=connections,
            fd_headroom=_headroom(),
            received_bytes=received_bytes,
            spooled_bytes=spooled_bytes,
        )


def _headroom() -> int:
    try:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(os.listdir(_DESCRIPTORS))
    except OSError:  # not even one to look with
        return 0


def _p99(values: Sequence[Seconds]) -> Seconds:
    """Nearest rank; numpy's would load a module first, and here there may be no descriptor left to do so."""
    return sorted(values)[math.ceil(0.99 * len(values)) - 1] if values else 0.0
