"""Continuous batching in virtual time, as SGLang 0.5.15 does it with overlap scheduling. Pure: no clock, no I/O.

Each `step` runs one iteration that was composed while the one before it was still running. Three things follow,
as in SGLang: a finished request takes part in one more decode iteration (a ghost row, discarded but paid for and
fed to the adaptive average), a request that arrives during iteration n joins n + 2 at the earliest, and a change
of K acts one launch late. Prefill goes first and makes the first token; a round's last drafts are never cut.

When the KV pool cannot hold the next round, requests are retracted: they queue again, keep their output, and the
prefill that brings them back makes one token more.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kit.standin.adaptive import AdaptiveController, Rung, Switch
from kit.standin.iteration import Iteration, Kind, Row
from kit.standin.request import Request
from kit.standin.world import World
from kit.units import Seconds, Tokens

__all__ = ["Engine", "Limits", "Speculation"]


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
    """What the scheduler admits at once.

    A request is admitted if the pool holds it and all that run, each with `share` of the tokens left to it; below 1
    that is a bet, and lost bets are retracted. `queued_requests` is how many may wait, None for any number.
    """

    running_requests: int = 48
    prefill_tokens: Tokens = 16_384
    pool_tokens: Tokens = 3_000_000
    share: float = 1.0
    queued_requests: int | None = None


class _Plan(NamedTuple):
    kind: Kind
    requests: tuple[Request, ...]
    running: int
    waiting: int
    depth: int | None = None
    draft_tokens: int | None = None


class Engine:
    """The scheduler of one launch. `launch_seed` None removes all noise from the durations.

    With `foresees_length`, as in 0.5.23, a request that the iteration under way must end by length leaves no ghost.
    """

    def __init__(
        self,
        world: World,
        *,
        speculation: Speculation | None,
        limits: Limits,
        launch_seed: int | None,
        foresees_length: bool = False,
    ) -> None:
        self._world = world
        self._speculation = speculation
        self._limits = limits
        self._foresees_length = foresees_length
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
        return sum(request.used_tokens for request in self._running)

    def submit(self, request: Request) -> None:
        """Queue a request, or reject it when the queue is full."""
        limit = self._limits.queued_requests
        if limit is not None and len(self._waiting) >= limit:
            request.reject("The request queue is full.", status_code=503, err_type=None)
        else:
            self._waiting.append(request)

    def abort(self, prefix: str) -> tuple[Request, ...]:
        """Abort every request whose rid begins with `prefix`; returns those that waited and have ended at once.

        A running request takes part in one more iteration and keeps what it has produced.
        """
        waited = tuple(request for request in self._waiting if request.rid.startswith(prefix))
        for request in waited:
            self._waiting.remove(request)
            request.reject("Abort in waiting queue")
        for request in self._running:
            if request.rid.startswith(prefix):
                request.abort = "Aborted by AbortReq."
        return waited

    def step(self) -> Iteration | None:
        """Run the next iteration and launch the one after it; None when idle.

        The launch does not know yet what this iteration returns, only what the earlier ones did.
        """
        plan = self._plan or self._launch(beside=None)
        if plan is None:
            return None
        # Requests of a prefill can decode in the next launch; those that finish here are only found out later.
        if plan.kind is Kind.PREFILL:
            self._running.extend(plan.requests)
        duration_s = self._duration(plan)
        self._plan = self._launch(beside=plan)
        rows = tuple(self._row(request, plan) for request in plan.requests)
        switches = self._process(plan, rows)
        return Iteration(
            kind=plan.kind,
            duration_s=duration_s,
            draft_tokens=plan.draft_tokens,
            rows=rows,
            running=plan.running,
            waiting=plan.waiting,
            depth=plan.depth,
            switches=switches,
            retracted=self._retracted,
        )

    def _launch(self, *, beside: _Plan | None) -> _Plan | None:
        """Compose the next iteration `beside` the one whose results are still out."""
        self._retracted: tuple[Request, ...] = ()
        admitted = self._admit()
        if admitted:
            return _Plan(Kind.PREFILL, admitted, len(self._running), len(self._waiting))
        self._retracted = tuple(self._retract(beside))
        requests = self._decodable(beside)
        if not requests:
            return None
        if self._controller is not None:
            self.depth = self._controller.depth(len(requests))
        running, waiting = len(self._running), len(self._waiting)
        return _Plan(Kind.DECODE, requests, running, waiting, self.depth, self.draft_tokens)

    def _decodable(self, beside: _Plan | None) -> tuple[Request, ...]:
        """What decodes next: all that run, but for those that are foreseen to have finished by then."""
        if not self._foresees_length or beside is None:
            return tuple(self._running)
        return tuple(
            request
            for request in self._running
            if request not in beside.requests or request.produced + 1 < request.max_new_tokens
        )

    def _admit(self) -> tuple[Request, ...]:
        """Waiting requests, in order of arrival, that fit into the batch, the prefill and the pool."""
        admitted: list[Request] = []
        free = self._limits.pool_tokens - sum(self._reserved(request) for request in self._running)
        budget = self._limits.prefill_tokens
        while self._waiting and len(self._running) + len(admitted) < self._limits.running_requests:
            head = self._waiting[0]
            free -= self._reserved(head)
            budget -= head.used_tokens - head.cached_tokens
            if free < 0 or (budget < 0 and admitted):
                break
            head.retracted = False
            admitted.append(self._waiting.popleft())
        return tuple(admitted)

    def _reserved(self, request: Request) -> Tokens:
        return request.reserved_tokens(self._limits.share)

    def _retract(self, beside: _Plan | None) -> Iterator[Request]:
        """Send requests back to the queue until the rounds under way of all others fit into the pool."""
        width = self.draft_tokens or 1
        while sum(request.next_round_tokens(width) for request in self._running) > self._limits.pool_tokens:
            victim = self._victim(beside)
            if victim is None:
                return
            victim.retracted = True
            victim.retractions += 1
            self._running.remove(victim)
            self._waiting.append(victim)
            yield victim

    def _victim(self, beside: _Plan | None) -> Request | None:
        """The newest where the server speculates, else the one with the shortest output; never the last one.

        Nor one whose prefill is still out: its token would be lost.
        """
        fresh = beside.requests if beside is not None and beside.kind is Kind.PREFILL else ()
        candidates = [request for request in self._running if request not in fresh]
        if len(self._running) < 2 or not candidates:
            return None
        if self._speculation is not None:
            return candidates[-1]
        return min(reversed(candidates), key=lambda request: (request.produced, -request.prompt_tokens))

    def _row(self, request: Request, plan: _Plan) -> Row:
        ghost = request.finish is not None or request.retracted
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
            fresh = sum(request.used_tokens - request.cached_tokens for request in plan.requests)
            exact = self._world.cost.prefill_s(fresh)
        else:
            exact = self._world.cost.decode_s(len(plan.requests), depth=plan.depth, draft_tokens=plan.draft_tokens or 1)
        if self._noise is None:
            return exact
        sd = self._world.noise.iteration_sd
        return exact * self._factor * self._noise.lognormvariate(-sd * sd / 2, sd)
