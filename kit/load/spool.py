"""Bytes of answers until they are parsed: in memory up to a limit, beyond it in a file without a name.

Raw bytes of a cell come in at some 9 MB/s from 250 streams of cumulative events, and nothing is parsed before its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Final, overload

from kit.load.arrivals import Piece
from kit.units import Nanoseconds

__all__ = ["Spool"]

MEMORY_BYTES: Final = 256 * 1024 * 1024


class Spool:
    """Takes whole answers. What it gives back stays readable after it is gone."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._file: IO[bytes] | None = None
        self.received_bytes = 0
        self.spooled_bytes = 0

    def keep(self, pieces: list[Piece]) -> Sequence[Piece]:
        """The same pieces, as they are or as a view of the file."""
        size = sum(len(data) for _, data in pieces)
        self.received_bytes += size
        if self.received_bytes - self.spooled_bytes <= self._memory_bytes:
            return pieces
        if self._file is None:
            self._file = TemporaryFile(prefix="speckit-")  # noqa: SIM115 (lives as long as a view of it)
        start = self.spooled_bytes
        self._file.write(b"".join(data for _, data in pieces))
        self._file.flush()
        self.spooled_bytes += size
        edges = [start]
        for _, data in pieces:
            edges.append(edges[-1] + len(data))
        return _Spooled(self._file, tuple(at for at, _ in pieces), tuple(edges))


@dataclass(frozen=True, slots=True)
class _Spooled(Sequence[Piece]):
    """Pieces in a file: piece n lies between `edges` n and n + 1."""

    file: IO[bytes]
    stamps: tuple[Nanoseconds, ...]
    edges: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.stamps)

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | Sequence[Piece]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return self.stamps[at], os.pread(self.file.fileno(), self.edges[at + 1] - self.edges[at], self.edges[at])

    def __iter__(self) -> Iterator[Piece]:
        return (self[at] for at in range(len(self)))
