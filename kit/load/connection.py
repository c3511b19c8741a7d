"""One HTTP/1.1 connection on a raw socket, for answers that are recorded rather than followed.

The read callback stamps and keeps; the task that waits is woken twice, at the head and at the end. asyncio's own
transports ask for 256 KiB on every receive and wake a task for every chunk, which costs more than the chunk does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import httptools
import httpx

from kit.load.arrivals import ANCILLARY_BYTES, KERNEL_STAMPS, Arrivals, WallClock
from kit.units import NS_PER_S, Seconds

__all__ = ["Connection", "Exchanged", "connect", "stamping_socket"]

READ_BYTES: Final = 64 * 1024
_Addresses = Sequence[tuple[int, int, int, str, tuple[Any, ...]]]


class Exchanged:
    """One request on its way through a connection: `head` and `end` resolve to what went wrong, or to None."""

    __slots__ = ("arrivals", "end", "framed", "head", "headers", "headless", "status")

    def __init__(self, loop: asyncio.AbstractEventLoop, arrivals: Arrivals, *, headless: bool) -> None:
        self.arrivals = arrivals
        self.headless = headless  # the answer to HEAD has no body, whatever its headers say
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.framed = False  # whether the head says where the body ends; else it ends with the connection
        self.head: asyncio.Future[httpx.TransportError | None] = loop.create_future()
        self.end: asyncio.Future[httpx.TransportError | None] = loop.create_future()


class Connection:
    """A connected socket with its parser. One exchange at a time; `on_idle` is called when it may take another."""

    def __init__(
        self,
        stream: socket.socket,
        *,
        clock: WallClock,
        buffer: bytearray,
        on_idle: Callable[[Connection], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = stream
        self._clock = clock
        self._buffer = memoryview(buffer)
        self._targets = [self._buffer]
        self._on_idle = on_idle
        self._parser = httptools.HttpResponseParser(self)
        self._exchange = Exchanged(self._loop, Arrivals(), headless=False)
        self._busy = False
        self._unsent = b""
        self._now = time.monotonic_ns()
        self._silence: Seconds | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False
        self._loop.add_reader(stream.fileno(), self._readable)

    @property
    def idle_s(self) -> Seconds:
        """Time since anything came in."""
        return (time.monotonic_ns() - self._now) / NS_PER_S

    def begin(self, request: bytes, exchange: Exchanged, *, silence_s: Seconds | None) -> None:
        """Write `request`; its answer goes to `exchange`. Nothing received for `silence_s` is a timeout."""
        self._exchange, self._busy, self._silence = exchange, True, silence_s
        self._now = exchange.arrivals.sent_ns = time.monotonic_ns()
        try:
            sent = self._socket.send(request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._fail(httpx.WriteError(_words(error)))
            return
        if sent < len(request):
            self._unsent = request[sent:]
            self._loop.add_writer(self._socket.fileno(), self._writable)
        self._watch()

    def close(self) -> None:
        """Close the socket; an exchange that is under way breaks. Idempotent."""
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        if self._busy:
            self._settle(httpx.ReadError("the connection was closed by the client"))

    def _readable(self) -> None:
        try:
            count, ancillary, _, _ = self._socket.recvmsg_into(self._targets, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._now = time.monotonic_ns()
            self._fail(httpx.ReadError(_words(error)))
            return
        stamp = self._clock.stamp(ancillary)
        if stamp is None:
            stamp = time.monotonic_ns()
            self._exchange.arrivals.unstamped += bool(count)
        self._now = stamp
        if not count:
            self._ended_by_server()
            return
        try:
            self._parser.feed_data(self._buffer[:count])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx.RemoteProtocolError(f"not HTTP/1.1: {error}"))

    def _writable(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(httpx.WriteError(_words(error)))
            return
        self._now = time.monotonic_ns()
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._loop.remove_writer(self._socket.fileno())

    # What the parser reports, by the names it asks for.

    def on_message_begin(self) -> None:
        """Bytes of an answer. Without a question they are not HTTP, and the connection cannot be trusted."""
        if not self._busy:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header line of the answer, or of an interim one before it."""
        exchange = self._exchange
        exchange.headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            exchange.framed = True

    def on_headers_complete(self) -> None:
        """The head is there. An interim answer (1xx) is not the answer: its headers are dropped."""
        exchange, status = self._exchange, self._parser.get_status_code()
        if status < 200:
            exchange.headers, exchange.framed = [], False
            return
        exchange.status = status
        if not exchange.head.done():
            exchange.head.set_result(None)
        if exchange.headless:
            self._complete(reusable=False)

    def on_body(self, data: bytes) -> None:
        """A part of the body, without its chunk framing."""
        self._exchange.arrivals.pieces.append((self._now, data))

    def on_message_complete(self) -> None:
        """The last byte of an answer, or of an interim one."""
        if self._busy and self._exchange.status:
            self._complete(reusable=self._parser.should_keep_alive() and not self._unsent)

    def _complete(self, *, reusable: bool) -> None:
        self._settle(None)
        if reusable:
            self._on_idle(self)
        else:
            self.close()

    def _ended_by_server(self) -> None:
        """End of stream: the proper end of a body without a length, the cut of any other, nothing when idle."""
        if self._busy and self._exchange.status and not self._exchange.framed:
            self._complete(reusable=False)
        else:
            what = "cut the body" if self._exchange.status else "closed the connection without an answer"
            self._fail(httpx.RemoteProtocolError(f"the server {what}"))

    def _fail(self, error: httpx.TransportError) -> None:
        if self._busy:
            self._settle(error)
        self.close()

    def _settle(self, error: httpx.TransportError | None) -> None:
        """Resolve the exchange; from here on the connection has none."""
        exchange, self._busy = self._exchange, False
        exchange.arrivals.ended_ns = self._now
        for future in (exchange.head, exchange.end):
            if not future.done():
                future.set_result(error)

    def _watch(self) -> None:
        """One timer a connection, moved on when it fires and not at every arrival."""
        if not self._busy or self._silence is None:
            self._timer = None
            return
        left = self._silence - self.idle_s
        if left <= 0:
            kind = httpx.WriteTimeout if self._unsent else httpx.ReadTimeout
            self._now = time.monotonic_ns()
            self._fail(kind(f"nothing moved for {self._silence:g} s"))
            return
        due = self._loop.time() + left
        if self._timer is not None and not self._timer.cancelled() and self._loop.time() < self._timer.when() <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._watch)


async def connect(host: str, port: int) -> socket.socket:
    """A connected socket that stamps what it receives where the kernel can.

    Raises httpx.ConnectError with the words of the system; `__cause__` is a socket.gaierror when the name is unknown.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, address in await _addresses(host, port):
        try:
            stream = socket.socket(family, kind, protocol)
        except OSError as error:  # no descriptor left, or a family that this host does not have
            failure = error
            continue
        try:
            stream.setblocking(False)
            await loop.sock_connect(stream, address)
        except OSError as error:
            stream.close()
            failure = error
        except asyncio.CancelledError:
            stream.close()
            raise
        else:
            _prepare(stream)
            return stream
    raise httpx.ConnectError(_words(failure) if failure else f"{host} has no address") from failure


async def _addresses(host: str, port: int) -> _Addresses:
    with contextlib.suppress(socket.gaierror):  # not a number; a number needs no thread to look it up
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    try:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise httpx.ConnectError(f"{host}: {error.strerror}") from error


def stamping_socket() -> socket.socket:
    """A socket that only asks for stamps: the kernel takes them while anybody does, and begins some time after that.

    Kept open, it spares the first answer of a cell from coming in without one.
    """
    keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _ask_for_stamps(keeper)
    return keeper


def _prepare(stream: socket.socket) -> None:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _ask_for_stamps(stream)


def _ask_for_stamps(stream: socket.socket) -> None:
    if KERNEL_STAMPS is not None:
        with contextlib.suppress(OSError):  # refused: every read will count as unstamped
            stream.setsockopt(socket.SOL_SOCKET, KERNEL_STAMPS, 1)


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
