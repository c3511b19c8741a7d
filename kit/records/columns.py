"""What the trace patch wrote, as columns: iterations of the scheduler, rounds of requests, changes of depth."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Ints", "Iterations", "Rounds", "Switches", "Trace"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Iterations:
    """Decode iterations of the scheduler, as columns of equal length, in processing order.

    `launch_ns` (of the batch) and `ready_ns` (of its result) are the server's monotonic clock. `draft_tokens` (K + 1
    for a chain) and `depth` (K) are what was in force when the iteration was launched, -1 without speculation.
    `running` and `waiting` count requests at that time, `prefill_tokens` prompt tokens that prefills computed since the
    decode before. `number` is contiguous within a launch. -1 is also what a source did not record.
    """

    launch: Ints
    number: Ints
    launch_ns: Ints
    ready_ns: Ints
    draft_tokens: Ints
    depth: Ints
    batch_size: Ints
    running: Ints
    waiting: Ints
    prefill_tokens: Ints
    cuda_graph: Bools

    @classmethod
    def of(cls, *, number: Ints, cuda_graph: Bools, **recorded: Ints) -> Self:
        """From what a source recorded; every other column is -1."""
        names = (each.name for each in fields(cls) if each.name not in ("number", "cuda_graph"))
        columns = {name: recorded.pop(name, np.full(len(number), -1, np.int64)) for name in names}
        return cls(number=number, cuda_graph=cuda_graph, **columns, **recorded)

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Rows of the iterations: one a request in the batch, as columns of equal length.

    `iteration` indexes `Iterations` and `rid` indexes `Trace.rids`; `tokens_before` counts output tokens
    before the round; `accepted` is the number of accepted drafts, -1 without speculation; a `ghost` row is discarded by
    the server, because its request had already finished or, where `retracted` says so, was sent back to the queue.
    """

    iteration: Ints
    rid: Ints
    tokens_before: Ints
    accepted: Ints
    ghost: Bools
    retracted: Bools

    def __len__(self) -> int:
        return len(self.iteration)


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """Changes of depth by an adaptive controller, as columns of equal length.

    `number` is the decode iteration that brought the change (-1 if it is not recorded): with its result where
    `by_result`, else with the size of its batch. `slot` is the batch-size slot that decided (-1 unknown), `average` its
    moving average of accepted drafts (NaN unknown).
    """

    launch: Ints
    number: Ints
    before: Ints
    after: Ints
    by_result: Bools
    slot: Ints
    average: Floats

    @classmethod
    def none(cls) -> Self:
        """Without a row."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, nothing != 0, nothing, np.empty(0))

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What the trace patch wrote, ghost rows and warm-up included; `lost` counts records that are missing."""

    iterations: Iterations
    rounds: Rounds
    rids: tuple[str, ...] = ()
    lost: int = 0
    switches: Switches = field(default_factory=Switches.none)

    @classmethod
    def empty(cls) -> Self:
        """Of a run that nobody traced."""
        nothing, no = np.empty(0, np.int64), np.empty(0, np.bool_)
        return cls(Iterations.of(number=nothing, cuda_graph=no), Rounds(nothing, nothing, nothing, nothing, no, no))
