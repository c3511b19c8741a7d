"""An event loop that hands bytes to their reader without a detour through the loop.

asyncio turns every readable socket into a handle, queues it, runs it in a context and works out its timers, which costs
more than the chunk that came in. Here the selector itself calls the readers of streams, and goes back to the loop only
when one of them has something for it: an answer that ended, a timer that is due, a file that somebody else watches.
"""

from __future__ import annotations

import asyncio
import math
import select
import selectors
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

__all__ = ["Reader", "StreamLoop", "run", "unwatch", "watch"]

T = TypeVar("T")
Reader = Callable[[], bool]
"""Called when its socket is readable; whether it left something for the event loop to do."""


# What one call of epoll makes room for; by default that is memory for a thousand.
_AT_ONCE: Final = 128


def _other() -> bool:
    """Reads nothing, and leaves all to the loop: for what is not a stream, or is not one any more."""
    return True


class _StreamSelector(selectors.BaseSelector):
    """Readers of streams in an epoll of their own, everything else in asyncio's selector, which that epoll watches."""

    def __init__(self) -> None:
        self._others = selectors.EpollSelector()
        self._epoll = select.epoll()
        self._epoll.register(self._others.fileno(), select.EPOLLIN)
        self._readers: dict[int, Reader] = {}  # no entry for the selector of the others

    def watch(self, descriptor: int, reader: Reader) -> None:
        """Call `reader` whenever there is something to read."""
        self._readers[descriptor] = reader
        self._epoll.register(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Forget it; call this before the socket is closed."""
        if self._readers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Call readers until one of them or somebody else has something for the loop, or a timer is due."""
        poll, readers = self._epoll.poll, self._readers
        due = math.inf if timeout is None else time.monotonic() + timeout
        left = timeout
        while True:
            ended = False
            for descriptor, _ in poll(left, _AT_ONCE):  # it rounds up to milliseconds: never back before a timer
                if readers.get(descriptor, _other)():
                    ended = True
            if ended:
                return self._others.select(0)
            if timeout is not None and (left := due - time.monotonic()) <= 0:
                return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._others.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._others.get_map()

    def close(self) -> None:
        self._others.close()
        self._epoll.close()


class StreamLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop with that selector."""

    def __init__(self) -> None:
        self.streams = _StreamSelector()
        super().__init__(self.streams)


def watch(loop: asyncio.AbstractEventLoop, descriptor: int, reader: Reader) -> None:
    """Call `reader` when there is something to read: directly where `loop` can, else as any loop does."""
    if isinstance(loop, StreamLoop):
        loop.streams.watch(descriptor, reader)
    else:
        loop.add_reader(descriptor, reader)


def unwatch(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    """Undo `watch`."""
    if isinstance(loop, StreamLoop):
        loop.streams.unwatch(descriptor)
    else:
        loop.remove_reader(descriptor)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` with a loop for streams, where the system has epoll."""
    with asyncio.Runner(loop_factory=StreamLoop if hasattr(select, "epoll") else None) as runner:
        return runner.run(work)
