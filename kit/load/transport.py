"""Transports of `httpx.AsyncClient` that record when each piece of an answer arrived.

`RecordingTransport` is the kit's own, for plain HTTP. `StampedTransport` is httpx's, for https, with stamps taken in
the event loop: its times are late by the length of the loop's queue, and cells measured with it say so. Both fill the
`Arrivals` that the request brings in `extensions["arrivals"]`, or one of their own, and leave it in the answer's.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from functools import cache
from ssl import SSLContext
from typing import Final
from weakref import WeakSet

import httpx

from kit.load.arrivals import Arrivals, Piece, WallClock
from kit.load.connection import Connection, Exchanged
from kit.load.sockets import Addresses, addresses_of, connect, stamping_socket
from kit.units import Seconds

__all__ = ["Origin", "RecordingTransport", "StampedTransport"]

# Uvicorn closes a connection that was idle for 5 s; a request sent into that moment would look like a reset.
_IDLE_LIMIT_S: Final = 4.0

Origin = tuple[str, int]
"""Host and port."""


class RecordingTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over raw sockets: one exchange a connection at a time, as many connections as there are exchanges.

    The body is recorded as it arrives and read when it has ended. A request is never sent twice, not even when a
    kept connection turns out to be dead. Use it within one event loop.
    """

    def __init__(self) -> None:
        self.clock = WallClock.now()
        self._keeper = stamping_socket()
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._addresses: dict[Origin, Addresses] = {}
        self._all: WeakSet[Connection] = WeakSet()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` and return at the head of its answer.

        Raises httpx.UnsupportedProtocol for anything but http, else what httpx's own transport raises.
        """
        if request.url.scheme != "http":
            raise httpx.UnsupportedProtocol(f"{request.url.scheme} is not recorded; use StampedTransport")
        timeouts = request.extensions.get("timeout", {})
        wire = _head(request) + await request.aread()
        origin = request.url.host, request.url.port or 80
        connection = await self._connection(origin, timeouts.get("connect"))
        exchange = Exchanged(asyncio.get_running_loop(), _arrivals(request), headless=request.method == "HEAD")
        connection.begin(wire, exchange, silence_s=timeouts.get("read"))
        try:
            error = await exchange.head
        finally:
            if not exchange.status:
                connection.close()
        if error is not None:
            raise error
        return httpx.Response(
            exchange.status,
            headers=exchange.headers,
            stream=_Recorded(connection, exchange),
            extensions={"http_version": b"HTTP/1.1", "arrivals": exchange.arrivals},
        )

    async def carry(self, origin: Origin, wire: bytes, exchange: Exchanged, *, connect_s: Seconds | None) -> None:
        """The same for a driver: send `wire` as it is and return at the end of the answer, which wakes one task once.

        Raises what `handle_async_request` and reading the body raise. Cancelling it closes the connection.
        """
        connection = await self._connection(origin, connect_s)
        connection.begin(wire, exchange, silence_s=None)
        try:
            error = await exchange.end
        except asyncio.CancelledError:
            connection.close()
            raise
        if error is not None:
            raise error

    async def open(self, origin: Origin, connections: int, *, timeout_s: Seconds) -> None:
        """Connect so often ahead of the first request. What cannot be opened is left to the requests to find out."""
        with contextlib.suppress(httpx.ConnectError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._reached(origin)
                making = (self._opened(origin) for _ in range(connections))
                for made in await asyncio.gather(*making, return_exceptions=True):
                    if isinstance(made, Connection):
                        self._idle[origin].append(made)

    @property
    def open_connections(self) -> int:
        """Sockets that are open now."""
        return sum(not connection.closed for connection in self._all)

    @property
    def silent_s(self) -> Seconds:
        """Time since anything came in on any open connection; 0 where none is open."""
        return min((connection.idle_s for connection in self._all if not connection.closed), default=0.0)

    async def aclose(self) -> None:
        """Close every connection; exchanges under way break."""
        for connection in self._all:
            connection.close()
        self._idle.clear()
        self._keeper.close()

    async def _connection(self, origin: Origin, timeout_s: Seconds | None) -> Connection:
        idle = self._idle[origin]
        while idle:
            connection = idle.pop()
            if not connection.closed and connection.idle_s < _IDLE_LIMIT_S:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._opened(origin)
        except TimeoutError:
            host, port = origin
            raise httpx.ConnectTimeout(f"no connection to {host}:{port} within {timeout_s:g} s") from None

    async def _opened(self, origin: Origin) -> Connection:
        stream = await connect(await self._reached(origin))
        connection = Connection(stream, clock=self.clock, on_idle=self._idle[origin].append)
        self._all.add(connection)
        return connection

    async def _reached(self, origin: Origin) -> Addresses:
        """A name is looked up once."""
        if origin not in self._addresses:
            self._addresses[origin] = await addresses_of(*origin)
        return self._addresses[origin]


class _Recorded(httpx.AsyncByteStream):
    """The body of a recorded answer: nothing until it has ended, then all of it, then what broke it, if anything."""

    def __init__(self, connection: Connection, exchange: Exchanged) -> None:
        self._connection = connection
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        error = await asyncio.shield(self._exchange.end)
        for _, data in self._exchange.arrivals.pieces:
            yield data
        if error is not None:
            raise error

    async def aclose(self) -> None:
        if not self._exchange.end.done():
            self._connection.close()


class StampedTransport(httpx.AsyncBaseTransport):
    """httpx's own transport with one connection, its pieces stamped when the event loop hands them over.

    One connection each, because a pool shared by many streams serialises them.
    """

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        self._inner = httpx.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` and return at the head of its answer. Raises what httpx's own transport raises."""
        arrivals = _arrivals(request)
        arrivals.sent_ns = time.monotonic_ns()
        response = await self._inner.handle_async_request(request)
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise httpx.StreamError("the inner transport gave a body that cannot be awaited")
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Stamped(response.stream, arrivals),
            extensions=response.extensions | {"arrivals": arrivals},
        )

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()


class _Stamped(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, arrivals: Arrivals) -> None:
        self._inner = inner
        self._arrivals = arrivals

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: list[Piece] = []
        self._arrivals.pieces = pieces
        try:
            async for data in self._inner:
                pieces.append((time.monotonic_ns(), data))
                yield data
        finally:
            self._arrivals.ended_ns = time.monotonic_ns()
            self._arrivals.reads = self._arrivals.unstamped = len(pieces)

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def _tls() -> SSLContext:
    """One context for all connections: making one takes tens of milliseconds, in which nobody else is served."""
    return httpx.create_ssl_context(trust_env=False)


def _arrivals(request: httpx.Request) -> Arrivals:
    given = request.extensions.get("arrivals")
    return given if isinstance(given, Arrivals) else Arrivals()


def _head(request: httpx.Request) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"
