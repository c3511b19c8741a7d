"""Which iterations a trace should hold and does not.

SGLang counts its iterations without a gap, and the trace says where it began, paused, resumed and ended.
What is missing in between is lost, whatever the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kit.records import Bools, Ints

__all__ = ["Ledger"]

# Events that promise a record for every iteration up to theirs.
_COMPLETE = frozenset({"flush", "pause", "end"})

Event = Mapping[str, Any]


class Ledger:
    """Accounts for a trace piece by piece; remembers which number comes next."""

    def __init__(self) -> None:
        self.headless = False  # whether the last piece began the trace without saying where it begins
        self._next: int | None = None
        self._not_decodes = 0
        self._paused_at: int | None = None

    def settle(self, numbers: Ints, decode: Bools, events: Sequence[Event]) -> tuple[Ints, int]:
        """Account for the next piece.

        Args:
            numbers: SGLang's iteration numbers, in processing order.
            decode: which of them are decodes.
            events: what the piece says about the recording, in order.

        Returns:
            Numbers that count decodes alone, from 0 and without a gap unless iterations are missing; and how
            many iterations are missing. A number that does not grow counts as one.
        """
        self.headless = False
        first = self._first(numbers, events)
        if first is None:
            return numbers, 0
        was_paused = self._paused_at is not None
        pauses = self._pauses(events)
        missing = np.diff(numbers, prepend=first - 1) - 1
        excused = np.zeros_like(numbers)
        for pause, resume in pauses:
            at = int(np.searchsorted(numbers, resume, side="right"))
            excused[at : at + 1] += resume - pause
        not_decodes = self._not_decodes + np.cumsum(~decode) + np.cumsum(excused)
        lost = int(np.maximum(missing - excused, 0).sum() + (missing < 0).sum())
        if len(numbers):
            first, self._not_decodes = int(numbers[-1]) + 1, int(not_decodes[-1])
        return numbers - not_decodes, lost + self._settle_tail(first, events, paused=was_paused)

    def _first(self, numbers: Ints, events: Sequence[Event]) -> int | None:
        """The number that must come next; the first one of all is numbered 0 among the decodes."""
        if self._next is None:
            start = next((event["iteration"] + 1 for event in events if event["event"] == "start"), None)
            self.headless = start is None and len(numbers) > 0
            self._next = start if start is not None or not len(numbers) else int(numbers[0])
            self._not_decodes = self._next or 0
        return self._next

    def _pauses(self, events: Iterable[Event]) -> list[tuple[int, int]]:
        """Last number before, and last number within, each pause that is over."""
        pauses = []
        for event in events:
            if event["event"] == "pause":
                self._paused_at = event["iteration"]
            elif event["event"] == "resume" and self._paused_at is not None:
                pauses.append((self._paused_at, event["iteration"]))
                self._paused_at = None
        return pauses

    def _settle_tail(self, expected: int, events: Iterable[Event], *, paused: bool) -> int:
        """What events tell about iterations after the last recorded one."""
        lost = 0
        for event in events:
            ahead = max(event.get("iteration", -1) + 1 - expected, 0)
            if event["event"] in _COMPLETE and not paused:
                lost += ahead
                expected += ahead
            elif event["event"] == "resume":
                self._not_decodes += ahead
                expected += ahead
            paused = event["event"] == "pause" or (paused and event["event"] != "resume")
        self._next = expected
        return lost
