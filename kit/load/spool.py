"""Bytes of answers until they are parsed: in memory up to a limit, beyond it in a file without a name.

Raw bytes of a cell come in at some 9 MB/s from 250 streams of cumulative events, and nothing is parsed before its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from tempfile import mkstemp
from typing import Final, overload

from kit.load.arrivals import Piece
from kit.load.body import Body
from kit.units import Nanoseconds

__all__ = ["Spool"]

MEMORY_BYTES: Final = 256 * 1024 * 1024


class Spool:
    """Takes whole answers. What it gives back stays readable after it is gone."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._file: _Unnamed | None = None
        self.received_bytes = 0
        self.spooled_bytes = 0

    def keep(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """The same pieces, as they are or as a view of the file. Of a body, everything that was received is kept."""
        held = pieces.received if isinstance(pieces, Body) else pieces
        size = sum([len(data) for _, data in held])
        self.received_bytes += size
        if self.received_bytes - self.spooled_bytes <= self._memory_bytes:
            return pieces
        return pieces.moved(self._moved(pieces.wire())) if isinstance(pieces, Body) else self._moved(pieces)

    def _moved(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        self._file = self._file or _Unnamed()
        edges = [self.spooled_bytes]
        for _, data in pieces:
            edges.append(edges[-1] + len(data))
        self._file.append(b"".join(data for _, data in pieces))
        self.spooled_bytes = edges[-1]
        return _Spooled(self._file, tuple(at for at, _ in pieces), tuple(edges))


class _Unnamed:
    """A file that is gone with the last view of it, however the process ends."""

    def __init__(self) -> None:
        self._descriptor, path = mkstemp(prefix="speckit-")
        os.unlink(path)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end. Raises OSError when the disk is full."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`."""
        return os.pread(self._descriptor, stop - start, start)


@dataclass(frozen=True, slots=True)
class _Spooled(Sequence[Piece]):
    """Pieces in a file: piece n lies between `edges` n and n + 1."""

    file: _Unnamed
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
        return self.stamps[at], self.file.read(self.edges[at], self.edges[at + 1])

    def __iter__(self) -> Iterator[Piece]:
        return (self[at] for at in range(len(self)))
