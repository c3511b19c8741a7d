"""Continuous batching in virtual time, as SGLang 0.5.15 does it with overlap scheduling. Pure: no clock, no I/O.

Each `step` runs one iteration that was composed while the one before it was still running. Three things follow,
as in SGLang: a finished request takes part in one more decode iteration (a ghost row, discarded but paid for and
fed to the adaptive average), a request that arrives during iteration n joins n + 2 at the earliest, and a change
of K acts one launch late. Prefill goes first and makes the first token; a round's last drafts are never cut.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from kit.standin.adaptive import AdaptiveController, Rung, Switch
from kit.standin.text import Text
from kit.standin.world import World
from kit.units import Seconds, Tokens

__all__ = ["Engine", "Iteration", "Kind", "Limits", "Request", "Row", "Speculation"]


class Kind(StrEnum):
    """What an iteration computes."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Speculation:
    """EAGLE3: K, the tokens verified a round (K + 1 for a chain), and the ladder of an adaptive launch."""

    steps: int
    draft_tokens: int
    ladder: Mapping[int, Rung] | None = None

    @classmethod
    def chain(cls, steps: int, *, ladder: Mapping[int, Rung] | None = None) -> Speculation:
        """A chain of `steps` drafts (topk 1)."""
        return cls(steps, steps + 1, ladder)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the scheduler admits at once."""

    running_requests: int = 48
    prefill_tokens: Tokens = 16_384
    pool_tokens: Tokens = 3_000_000


@dataclass(slots=True, eq=False)
class Request:
    """One request and its progress. `stop_at` is the position of the token that ends it, None without one."""

    rid: str
    prompt_tokens: Tokens
    text: Text
    max_new_tokens: Tokens
    stop_at: int | None = None
    cached_tokens: Tokens = 0
    produced: Tokens = 0
    histogram: list[int] = field(default_factory=list)
    finish: dict[str, Any] | None = None
    abort: str | None = None

    @property
    def reserved_tokens(self) -> Tokens:
        """Tokens of the KV pool that it may come to need."""
        return self.prompt_tokens + self.max_new_tokens

    def count_round(self, accepted: int) -> None:
        """Add a verify round to the histogram, which grows on demand."""
        self.histogram.extend([0] * (accepted + 1 - len(self.histogram)))
        self.histogram[accepted] += 1

    def extend(self, count: Tokens) -> None:
        """Take up to `count` further tokens and finish if they end it. The length limit is looked at first."""
        total = self.produced + count
        if self.abort is not None:
            self.produced = min(total, self.max_new_tokens)
            self.finish = {"type": "abort", "message": self.abort, "status_code": None, "err_type": None}
        elif total >= self.max_new_tokens:
            self.produced = self.max_new_tokens
            self.finish = {"type": "length", "length": self.max_new_tokens}
        elif self.stop_at is not None and self.stop_at < total:
            self.produced = self.stop_at + 1
            self.finish = {"type": "stop", "matched": self.text.tokens[self.stop_at]}
        else:
            self.produced = total


class Row(NamedTuple):
    """One request in one iteration; `before` counts its output tokens; `accepted` is None without speculation."""

    request: Request
    before: Tokens
    accepted: int | None
    ghost: bool


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one step did.

    `draft_tokens` were verified a row (K + 1 in a chain), None in a prefill and without speculation. `running` and
    `waiting` count the requests beside it when it was launched; those of a prefill are in neither.
    """

    kind: Kind
    duration_s: Seconds
    draft_tokens: int | None
    rows: tuple[Row, ...]
    running: int
    waiting: int
    switches: tuple[Switch, ...] = ()

    @property
    def finished(self) -> tuple[Request, ...]:
        """Requests that ended in this iteration."""
        return tuple(row.request for row in self.rows if row.request.finish is not None and not row.ghost)


class _Plan(NamedTuple):
    kind: Kind
    requests: tuple[Request, ...]
    running: int
    waiting: int
    depth: int | None = None
    draft_tokens: int | None = None


class Engine:
    """The scheduler of one launch. `launch_seed` None removes all noise from the durations."""

    def __init__(
        self, world: World, *, speculation: Speculation | None, limits: Limits, launch_seed: int | None
    ) -> None:
        self._world = world
        self._speculation = speculation
        self._limits = limits
        self._controller = (
            AdaptiveController(speculation.ladder, launch_steps=speculation.steps)
            if speculation and speculation.ladder
            else None
        )
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._plan: _Plan | None = None
        self._noise = None if launch_seed is None else random.Random(f"iterations {launch_seed}")
        self._factor = 1.0 if launch_seed is None else world.launch_factor(launch_seed)
        self.depth = speculation.steps if speculation else None

    @property
    def draft_tokens(self) -> int | None:
        """Tokens that the latest launch verifies a row; None without speculation."""
        if self._speculation is None or self.depth is None:
            return None
        return self._speculation.draft_tokens if self._controller is None else self.depth + 1

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is launched."""
        return self.drained and not self._waiting

    @property
    def drained(self) -> bool:
        """Whether nothing runs or is launched, so that the next iteration begins when somebody asks for it."""
        return not (self._plan or self._running)

    @property
    def running(self) -> int:
        """Requests admitted and not yet known to be finished."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests not yet admitted."""
        return len(self._waiting)

    @property
    def used_tokens(self) -> Tokens:
        """Tokens in the KV pool."""
        return sum(request.prompt_tokens + request.produced for request in self._running)

    def submit(self, request: Request) -> None:
        """Queue a request."""
        self._waiting.append(request)

    def abort(self, prefix: str) -> tuple[Request, ...]:
        """Abort every request whose rid begins with `prefix`; returns those that waited and have ended at once.

        A running request takes part in one more iteration and keeps what it has produced.
        """
        waited = tuple(request for request in self._waiting if request.rid.startswith(prefix))
        for request in waited:
            self._waiting.remove(request)
            request.finish = {"type": "abort", "message": "Abort in waiting queue"}
        for request in self._running:
            if request.rid.startswith(prefix):
                request.abort = "Aborted by AbortReq."
        return waited

    def step(self) -> Iteration | None:
        """Run the next iteration and launch the one after it; None when idle.

        The launch does not know yet what this iteration returns, only what the earlier ones did.
        """
        plan = self._plan or self._launch()
        if plan is None:
            return None
        rows = tuple(self._row(request, plan) for request in plan.requests)
        # Requests of a prefill can decode in the next launch; those that finish here are only found out later.
        if plan.kind is Kind.PREFILL:
            self._running.extend(plan.requests)
        self._plan = self._launch()
        switches = self._process(plan, rows)
        return Iteration(
            kind=plan.kind,
            duration_s=self._duration(plan),
            draft_tokens=plan.draft_tokens,
            rows=rows,
            running=plan.running,
            waiting=plan.waiting,
            switches=switches,
        )

    def _launch(self) -> _Plan | None:
        admitted = self._admit()
        running, waiting = len(self._running), len(self._waiting)
        if admitted:
            return _Plan(Kind.PREFILL, admitted, running, waiting)
        if not self._running:
            return None
        if self._controller is not None:
            self.depth = self._controller.depth(len(self._running))
        return _Plan(Kind.DECODE, tuple(self._running), running, waiting, self.depth, self.draft_tokens)

    def _admit(self) -> tuple[Request, ...]:
        """Waiting requests, in order of arrival, that fit into the batch, the prefill and the pool."""
        admitted: list[Request] = []
        free = self._limits.pool_tokens - sum(request.reserved_tokens for request in self._running)
        budget = self._limits.prefill_tokens
        while self._waiting and len(self._running) + len(admitted) < self._limits.running_requests:
            head = self._waiting[0]
            free -= head.reserved_tokens
            budget -= head.prompt_tokens - head.cached_tokens
            if free < 0 or (budget < 0 and admitted):
                break
            admitted.append(self._waiting.popleft())
        return tuple(admitted)

    def _row(self, request: Request, plan: _Plan) -> Row:
        ghost = request.finish is not None
        if plan.depth is None:
            return Row(request, request.produced, None, ghost)
        accepted = request.text.accepted(request.produced, depth=plan.depth)
        return Row(request, request.produced, accepted, ghost)

    def _process(self, plan: _Plan, rows: tuple[Row, ...]) -> tuple[Switch, ...]:
        for request, _, accepted, ghost in rows:
            if ghost:
                continue
            if accepted is not None:
                request.count_round(accepted)
            request.extend(1 + (accepted or 0))
        self._running = [request for request in self._running if request.finish is None]
        if self._controller is None or plan.depth is None:
            return ()
        switch = self._controller.observe([row.accepted or 0 for row in rows])
        return (switch,) if switch else ()

    def _duration(self, plan: _Plan) -> Seconds:
        if plan.kind is Kind.PREFILL:
            fresh = sum(request.prompt_tokens - request.cached_tokens for request in plan.requests)
            exact = self._world.cost.prefill_s(fresh)
        else:
            exact = self._world.cost.decode_s(len(plan.requests), depth=plan.depth, draft_tokens=plan.draft_tokens or 1)
        if self._noise is None:
            return exact
        sd = self._world.noise.iteration_sd
        return exact * self._factor * self._noise.lognormvariate(-sd * sd / 2, sd)
