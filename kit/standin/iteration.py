"""What one step of the engine did: the rows of its batch, how long it took, what changed. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kit.standin.adaptive import Switch
from kit.standin.request import Request
from kit.units import Seconds, Tokens

__all__ = ["Iteration", "Kind", "Row"]


class Kind(StrEnum):
    """What an iteration computes."""

    PREFILL = "prefill"
    DECODE = "decode"


class Row(NamedTuple):
    """One request in one iteration; `before` counts its output tokens; `accepted` is None without speculation.

    A `ghost` row's result is discarded: its request had already finished, or has been retracted.
    """

    request: Request
    before: Tokens
    accepted: int | None
    ghost: bool


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one step did.

    `draft_tokens` were verified a row (K + 1 in a chain) at a `depth` of K; both are None in a prefill and without
    speculation. `running` and `waiting` count the requests beside it when it was launched; those of a prefill are in
    neither. `retracted` left the batch while it ran.
    """

    kind: Kind
    duration_s: Seconds
    draft_tokens: int | None
    rows: tuple[Row, ...]
    running: int
    waiting: int
    depth: int | None = None
    switches: tuple[Switch, ...] = ()
    retracted: tuple[Request, ...] = ()

    @property
    def finished(self) -> tuple[Request, ...]:
        """Requests that ended in this iteration."""
        return tuple(row.request for row in self.rows if row.request.finish is not None and not row.ghost)
