"""An event loop whose timers are right to some ten microseconds instead of a millisecond."""

from __future__ import annotations

import asyncio
import select
import selectors

__all__ = ["precise_loop"]


class _PreciseSelector(selectors.EpollSelector):
    """epoll counts timeouts in whole milliseconds, rounded up; select on the epoll descriptor does not."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def precise_loop() -> asyncio.AbstractEventLoop:
    """A new event loop."""
    return asyncio.SelectorEventLoop(_PreciseSelector())
