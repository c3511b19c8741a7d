"""Sends requests and stamps times; does no arithmetic on them.

A closed loop: each of C workers sends its next request when its last one has ended. Bytes are stamped on arrival and
parsed later.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from kit.load.arrivals import Arrivals
from kit.load.stream import Exchange
from kit.load.transport import RecordingTransport, StampedTransport
from kit.records import Outcome
from kit.units import Seconds

__all__ = ["ClientHealth", "Job", "drive"]

_LAG_PERIOD_S = 0.02


@dataclass(frozen=True, slots=True)
class Job:
    """One request to send: its id and its JSON body."""

    rid: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """Whether the client could keep up: CPU share of this process, longest event-loop lag, bytes received."""

    cpu_share: float
    loop_lag_s: Seconds
    received_bytes: int


async def drive(
    base_url: str,
    jobs: Sequence[Job],
    *,
    concurrency: int,
    timeout_s: Seconds,
    on_done: Callable[[], None] = lambda: None,
) -> tuple[list[Exchange], ClientHealth]:
    """Send `jobs` in order with `concurrency` in flight; the exchanges come back in the order of the jobs.

    Never raises for a failed request: the failure is in its exchange. Cancelling it closes every connection.
    """
    exchanges = [Exchange(job.rid) for job in jobs]
    timeout, url = httpx.Timeout(timeout_s, connect=10.0), httpx.URL(f"{base_url}/generate")
    requests = [_request(url, job, timeout) for job in jobs]
    queue = iter(list(zip(exchanges, requests, strict=True)))
    lag = _LoopLag()
    async with AsyncExitStack() as connections:
        transports = _transports(url, min(concurrency, len(jobs)))
        for transport in set(transports):
            await connections.enter_async_context(transport)
        connections.enter_context(_no_collection())
        started, cpu = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(lag.watch())
            await asyncio.wait([group.create_task(_worker(each, queue, timeout_s, on_done)) for each in transports])
            watch.cancel()
    share = (time.process_time() - cpu) / max(time.monotonic() - started, 1e-9)
    received = sum(len(data) for exchange in exchanges for _, data in exchange.pieces)
    return exchanges, ClientHealth(share, lag.longest_s, received)


def _request(url: httpx.URL, job: Job, timeout: httpx.Timeout) -> httpx.Request:
    """Built before the cell: building it between two requests would leave a slot of the server idle."""
    return httpx.Request(
        "POST",
        url,
        content=orjson.dumps(job.payload),
        headers={"Content-Type": "application/json"},
        extensions={"timeout": timeout.as_dict(), "arrivals": Arrivals()},
    )


def _transports(url: httpx.URL, count: int) -> list[httpx.AsyncBaseTransport]:
    """One for each slot: the kit's own may be shared, httpx's may not."""
    if url.scheme == "http":
        return [RecordingTransport()] * count
    return [StampedTransport() for _ in range(count)]


async def _worker(
    transport: httpx.AsyncBaseTransport,
    queue: Iterator[tuple[Exchange, httpx.Request]],
    timeout_s: Seconds,
    on_done: Callable[[], None],
) -> None:
    for exchange, request in queue:
        await _exchange(transport, exchange, request, timeout_s)
        on_done()


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while stamps are taken: a full one stops every stream for a tenth of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _exchange(
    transport: httpx.AsyncBaseTransport, exchange: Exchange, request: httpx.Request, timeout_s: Seconds
) -> None:
    """One request, past `AsyncClient.send`: cookies, redirects and authentication cost it a tenth of a millisecond."""
    arrivals: Arrivals = request.extensions["arrivals"]
    asked_ns = time.monotonic_ns()
    try:
        async with asyncio.timeout(timeout_s):
            response = await transport.handle_async_request(request)
            exchange.status = response.status_code
            try:
                async for _ in response.stream:  # type: ignore[union-attr]
                    pass
            finally:
                await response.aclose()
    except (httpx.HTTPError, TimeoutError) as error:
        exchange.broken = _kind(error, answered=exchange.status is not None)
        exchange.error = f"{type(error).__name__}: {error}".rstrip(": ")
    finally:
        exchange.sent_ns = arrivals.sent_ns or asked_ns
        exchange.ended_ns = arrivals.ended_ns or time.monotonic_ns()
        exchange.pieces = arrivals.pieces


def _kind(error: Exception, *, answered: bool) -> Outcome:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Outcome.TIMEOUT
    if isinstance(error, httpx.ConnectError):
        return Outcome.DNS if isinstance(error.__cause__, socket.gaierror) else Outcome.REFUSED
    return Outcome.CUT if answered else Outcome.RESET


class _LoopLag:
    """Longest delay with which the event loop woke a sleeper: what a stamp can be late by."""

    def __init__(self) -> None:
        self.longest_s: Seconds = 0.0

    async def watch(self) -> None:
        while True:
            due = time.monotonic() + _LAG_PERIOD_S
            await asyncio.sleep(_LAG_PERIOD_S)
            self.longest_s = max(self.longest_s, time.monotonic() - due)
