"""Sends requests and stamps times; does no arithmetic on them.

A closed loop: each of C slots sends its next request when its last one has ended. An open loop: each request is sent
when it is due. Bytes are stamped on arrival and parsed later.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import orjson

from kit.load.arrivals import Arrivals
from kit.load.carriers import carrier_for
from kit.load.health import ClientHealth, Watch
from kit.load.spool import Spool
from kit.load.stream import Exchange
from kit.records import Outcome
from kit.units import NS_PER_S, Nanoseconds, Seconds

__all__ = ["Job", "Patience", "drive", "drive_schedule"]

_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take, and how long all requests in flight together may be without a byte (None: for ever).

    The latter is a hang of the server, which answers health checks all the while: what is in flight is given up, and
    what was not sent stays unsent.
    """

    request_s: Seconds
    silence_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One request to send: its id and its JSON body."""

    rid: str
    payload: dict[str, Any]


async def drive(
    base_url: str,
    jobs: Sequence[Job],
    *,
    concurrency: int,
    patience: Patience,
    on_done: Callable[[], None] = lambda: None,
) -> tuple[list[Exchange], ClientHealth]:
    """Send `jobs` in order with `concurrency` in flight; the exchanges come back in the order of the jobs.

    Never raises for a failed request: the failure is in its exchange. Cancelling it closes every connection.
    """
    cell = _Cell(base_url, jobs, patience=patience, on_done=on_done)
    queue = iter(cell.pairs)
    slots = min(concurrency, len(jobs))
    return await cell.play([cell.slot(queue) for _ in range(slots)], connections=slots)


async def drive_schedule(
    base_url: str,
    jobs: Sequence[Job],
    *,
    due_s: Sequence[Seconds],
    patience: Patience,
    on_done: Callable[[], None] = lambda: None,
) -> tuple[list[Exchange], ClientHealth]:
    """Send each of `jobs` at its time in `due_s` (seconds from the start, ascending), however many are in flight.

    `sent_ns` of an exchange is then the time at which it was due, so that latencies include whatever held it up; by how
    much requests were late is in the health. Never raises for a failed request.
    """
    cell = _Cell(base_url, jobs, patience=patience, on_done=on_done)
    exchanges, health = await cell.play([cell.scheduled(due_s)])
    return [replace(each, sent_ns=each.due_ns) for each in exchanges], health


class _Cell:
    """One pass: its requests, written before it starts, and what carries them."""

    def __init__(self, base_url: str, jobs: Sequence[Job], *, patience: Patience, on_done: Callable[[], None]) -> None:
        self.pairs = [(Exchange(job.rid), orjson.dumps(job.payload)) for job in jobs]
        self._carrier = carrier_for(f"{base_url}/generate")
        self._patience = patience
        self._waiting: set[asyncio.Timeout] = set()
        self._hung = False
        self._on_done = on_done
        self._spool = Spool()

    async def play(
        self, parts: Sequence[Coroutine[Any, Any, None]], *, connections: int = 0
    ) -> tuple[list[Exchange], ClientHealth]:
        """Run `parts` side by side, undisturbed, and tell what came of it; so many connections are made before."""
        exchanges = [exchange for exchange, _ in self.pairs]
        try:
            await self._carrier.open(connections)
            watch = Watch(self._carrier.clock)
            with _no_collection():
                watch.lag()
                supervisor = asyncio.create_task(self._supervise(self._patience.silence_s))
                try:
                    async with asyncio.TaskGroup() as group:
                        for part in parts:
                            group.create_task(part)
                finally:
                    supervisor.cancel()
                watch.stop()
            health = watch.health(
                exchanges,
                connections=self._carrier.connections,
                received_bytes=self._spool.received_bytes,
                spooled_bytes=self._spool.spooled_bytes,
            )
        finally:
            await self._carrier.aclose()
        return exchanges, health

    async def _supervise(self, limit_s: Seconds | None) -> None:
        """End the wait for a server that sends nothing to anybody."""
        if limit_s is None:
            return
        while not self._hung:
            await asyncio.sleep(min(_LOOK_S, limit_s))
            self._hung = bool(self._waiting) and self._carrier.silent_s > limit_s
        for timeout in self._waiting:
            timeout.reschedule(asyncio.get_running_loop().time())

    async def slot(self, queue: Iterator[tuple[Exchange, bytes]]) -> None:
        """One slot of a closed loop. A request is due when the one before it has ended."""
        due_ns = 0
        for exchange, body in queue:
            exchange.due_ns = due_ns
            due_ns = await self._exchange(exchange, body)

    async def scheduled(self, due_s: Sequence[Seconds]) -> None:
        """An open loop."""
        start = time.monotonic_ns()
        async with asyncio.TaskGroup() as group:
            for (exchange, body), due in zip(self.pairs, due_s, strict=True):
                exchange.due_ns = start + round(due * NS_PER_S)
                await asyncio.sleep((exchange.due_ns - time.monotonic_ns()) / NS_PER_S)
                group.create_task(self._exchange(exchange, body))

    async def _exchange(self, exchange: Exchange, body: bytes) -> Nanoseconds:
        """One request; when its answer was there."""
        arrivals = Arrivals()
        asked_ns = time.monotonic_ns()
        try:
            await self._post(exchange, body, arrivals)
        except (httpx.HTTPError, TimeoutError) as error:
            exchange.broken = _kind(error, answered=exchange.status is not None)
            exchange.error = f"{type(error).__name__}: {error}".rstrip(": ")
        finally:
            if self._hung:
                exchange.broken = exchange.broken and Outcome.STALLED
            _fill(exchange, arrivals, asked_ns)
            exchange.pieces = self._spool.keep(arrivals.pieces)
            self._on_done()
        return arrivals.ended_ns or exchange.ended_ns

    async def _post(self, exchange: Exchange, body: bytes, arrivals: Arrivals) -> None:
        if self._hung:
            raise TimeoutError("not sent: the server had stopped answering")
        async with asyncio.timeout(self._patience.request_s) as timeout:
            self._waiting.add(timeout)
            try:
                await self._carrier.post(body, arrivals, exchange)
            finally:
                self._waiting.discard(timeout)


def _fill(exchange: Exchange, arrivals: Arrivals, asked_ns: Nanoseconds) -> None:
    """Copy the stamps; a request that was never written gets the time of the attempt.

    It ends when its slot is free again. That is later than the arrival of the last byte by the queue of the event loop,
    which belongs to the slot and not to the server: the chunks keep their own times.
    """
    exchange.written_ns = arrivals.sent_ns
    exchange.sent_ns = arrivals.sent_ns or asked_ns
    exchange.reads, exchange.unstamped = arrivals.reads, arrivals.unstamped
    exchange.ended_ns = time.monotonic_ns()


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while stamps are taken: a full one stops every stream for a tenth of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _kind(error: Exception, *, answered: bool) -> Outcome:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Outcome.TIMEOUT
    if isinstance(error, httpx.ConnectError):
        return Outcome.DNS if isinstance(error.__cause__, socket.gaierror) else Outcome.REFUSED
    return Outcome.CUT if answered else Outcome.RESET
