"""Who is told how a measurement goes."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Watcher"]


class Watcher(Protocol):
    """Whoever wants to know how a measurement goes. Every call is cheap; nothing waits for an answer."""

    def expect(self, requests: int) -> None:
        """So many requests will be sent."""

    def step(self, what: str) -> None:
        """Now doing `what`: an arm and a concurrency."""

    def advance(self) -> None:
        """One more request has ended."""

    def say(self, message: str) -> None:
        """Something the user should read now."""
