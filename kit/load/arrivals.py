"""What came back for one request and when: bytes as they arrived, stamped, not interpreted.

A stamp is the kernel's receive time where the socket offers it (`SO_TIMESTAMPNS`). One taken in user space measures the
queue of the event loop as well: when an engine emits for 250 streams in one instant, that queue is milliseconds long.
"""

from __future__ import annotations

import itertools
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kit.units import Nanoseconds

__all__ = ["ANCILLARY_BYTES", "KERNEL_STAMPS", "Ancillary", "Arrivals", "Piece", "Received", "WallClock", "coalesced"]

Piece = tuple[Nanoseconds, bytes]
Ancillary = Sequence[tuple[int, int, bytes]]
Received = tuple[Ancillary | Nanoseconds, bytes]
"""One read of a socket: the kernel's stamp as it gave it, or where it gave none the time of the read."""

# Python names no constant for it. The value is that of all Linux architectures but Alpha, MIPS, PA-RISC and SPARC.
KERNEL_STAMPS: Final = 35 if sys.platform == "linux" else None
_TIMESPEC: Final = struct.Struct("@qq")
ANCILLARY_BYTES: Final = 64
_BRACKETS: Final = 9
_NS: Final = 1_000_000_000


@dataclass(slots=True)
class Arrivals:
    """One answer as it came in; times are nanoseconds of the monotonic clock, 0 while they have not happened.

    `sent_ns` is taken at the socket write, `ended_ns` is the arrival of the last byte of the answer (or the moment at
    which it broke). `pieces` are those of its body, `reads` how often something was received, and `unstamped` for how
    many of these the kernel gave no time, so that the event loop's was taken.
    """

    sent_ns: Nanoseconds = 0
    ended_ns: Nanoseconds = 0
    pieces: Sequence[Piece] = ()
    reads: int = 0
    unstamped: int = 0


@dataclass(frozen=True, slots=True)
class WallClock:
    """The kernel stamps by the wall clock; `offset_ns` leads from there to the monotonic clock.

    Taken once a cell: the two run at one rate, so a later offset that differs means that somebody set the clock.
    """

    offset_ns: Nanoseconds

    @classmethod
    def now(cls) -> WallClock:
        """The offset, from the tightest of several brackets of one clock by the other."""
        return cls(min((_bracket() for _ in range(_BRACKETS)), key=lambda each: each[0])[1])

    def stamp(self, received: Received) -> Nanoseconds:
        """Monotonic time of a read. Its only control message is the stamp: nothing else is asked for."""
        told = received[0]
        if isinstance(told, int):
            return told
        seconds, nanoseconds = _TIMESPEC.unpack(told[0][2])
        return int(seconds) * _NS + int(nanoseconds) + self.offset_ns


def _bracket() -> tuple[Nanoseconds, Nanoseconds]:
    """(width of the bracket, offset)."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    after = time.monotonic_ns()
    return after - before, (before + after) // 2 - wall


def coalesced(stamps: Iterable[Nanoseconds]) -> int:
    """Stamps that equal the one before: what they belong to was received together, and the gap is unknown."""
    return sum(first == second for first, second in itertools.pairwise(stamps))
