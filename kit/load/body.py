"""The body of a recorded answer, taken out of its HTTP framing when somebody reads it: after the cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import httptools

from kit.load.arrivals import Piece, Received, WallClock
from kit.units import Nanoseconds

__all__ = ["Body"]


class Body(Sequence[Piece]):
    """(arrival, data) of the parts of a body, out of everything that was received, head included.

    Where the bytes are no HTTP, it ends.
    """

    __slots__ = ("_clock", "received")

    def __init__(self, received: Sequence[Received], clock: WallClock) -> None:
        self.received = received
        self._clock = clock

    def wire(self) -> list[Piece]:
        """All that was received, framing and all, each with its monotonic time."""
        return [(self._clock.stamp(each), each[1]) for each in self.received]

    def moved(self, received: Sequence[Received]) -> Body:
        """The same body, with its bytes kept elsewhere."""
        return Body(received, self._clock)

    def __iter__(self) -> Iterator[Piece]:
        unframed = _Unframed()
        parser = httptools.HttpResponseParser(unframed)
        try:
            for received in self.received:
                unframed.now = self._clock.stamp(received)
                parser.feed_data(received[1])
                yield from unframed.taken()
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            yield from unframed.taken()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | Sequence[Piece]:
        return list(self)[index]


class _Unframed:
    """What the parser reports of one answer, by the names that it asks for."""

    def __init__(self) -> None:
        self.now: Nanoseconds = 0
        self._pieces: list[Piece] = []

    def on_body(self, data: bytes) -> None:
        self._pieces.append((self.now, data))

    def taken(self) -> list[Piece]:
        """What came since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces
