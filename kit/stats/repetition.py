"""Repetition in one sequence of tokens: a text that ends in a cycle is drafted perfectly and wanted by nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Cycle", "closing_cycle"]

MAX_PERIOD: Final = 64


@dataclass(frozen=True, slots=True)
class Cycle:
    """The longest end of a sequence that repeats with `period`: `tokens` long, its first period included.

    Without any repetition, `period` and `tokens` are 0. `distinct` counts different tokens of the whole.
    """

    period: int
    tokens: int
    distinct: int
    total: int

    @property
    def repeats(self) -> float:
        """How often the period is there; less than 2 is no repetition to speak of."""
        return self.tokens / self.period if self.period else 0.0

    @property
    def share(self) -> float:
        """Share of the sequence that the cycle covers."""
        return self.tokens / self.total if self.total else 0.0


def closing_cycle(ids: ArrayLike, *, max_period: int = MAX_PERIOD) -> Cycle:
    """The cycle at the end of `ids` (tokens,), of at most `max_period`, that covers most; the shortest of equals."""
    sequence = np.asarray(ids, np.int64)
    total = len(sequence)
    recent = sequence[max(total - 1 - max_period, 0) : total - 1]
    best = Cycle(0, 0, len(np.unique(sequence)), total)
    # Only a period at which the last token stood before can be one.
    for period in (len(recent) - np.flatnonzero(recent == sequence[-1:])[::-1]).tolist():
        differs = np.flatnonzero(sequence[period:] != sequence[:-period])
        tokens = total - (int(differs[-1]) + 1 if len(differs) else 0)
        if tokens > best.tokens:
            best = Cycle(period, tokens, best.distinct, total)
    return best
