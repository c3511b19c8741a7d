"""One HTTP/1.1 connection on a raw socket, for answers that are recorded rather than followed.

The read callback stamps and keeps; the task that waits is woken twice, at the head and at the end. asyncio's own
transports ask for 256 KiB on every receive and wake a task for every chunk, which costs more than the chunk does.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Final

import httptools
import httpx

from kit.load.arrivals import ANCILLARY_BYTES, Arrivals, Received, WallClock
from kit.load.body import Body
from kit.load.loop import unwatch, watch
from kit.load.sockets import words
from kit.units import NS_PER_S, Nanoseconds, Seconds

__all__ = ["Connection", "Exchanged"]

READ_BYTES: Final = 64 * 1024
# A chunked body ends like this, with trailers or without; an event inside it ends otherwise.
_LAST: Final = b"\r\n\r\n"


class Exchanged:
    """One request on its way through a connection: `head` and `end` resolve to what went wrong, or to None."""

    __slots__ = ("arrivals", "chunked", "end", "framed", "head", "headers", "headless", "status")

    def __init__(self, loop: asyncio.AbstractEventLoop, arrivals: Arrivals, *, headless: bool) -> None:
        self.arrivals = arrivals
        self.headless = headless  # the answer to HEAD has no body, whatever its headers say
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.framed = False  # whether the head says where the body ends; else it ends with the connection
        self.chunked = False
        self.head: asyncio.Future[httpx.TransportError | None] = loop.create_future()
        self.end: asyncio.Future[httpx.TransportError | None] = loop.create_future()


class Connection:
    """A connected socket with its parser. One exchange at a time; `on_idle` is called when it may take another."""

    __slots__ = (
        *(
            "__weakref__",
            "_busy",
            "_clock",
            "_deferred",
            "_exchange",
            "_looked",
            "_loop",
            "_now",
            "_on_idle",
            "_parser",
        ),
        *("_receive", "_received", "_silence", "_socket", "_timer", "_unsent", "closed"),
    )

    def __init__(
        self,
        stream: socket.socket,
        *,
        clock: WallClock,
        on_idle: Callable[[Connection], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = stream
        self._receive = stream.recvmsg
        self._clock = clock
        self._received: list[Received] = []
        self._looked = 0  # how much of it the parser has seen
        self._deferred = False  # whether a body is coming in whose end can be seen without parsing it
        self._on_idle = on_idle
        self._parser = httptools.HttpResponseParser(self)
        self._exchange = Exchanged(self._loop, Arrivals(), headless=False)
        self._busy = False
        self._unsent = b""
        self._now = time.monotonic_ns()
        self._silence: Seconds | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False
        watch(self._loop, stream.fileno(), self._readable)

    @property
    def idle_s(self) -> Seconds:
        """Time since anything came in, whether the parser has seen it or not."""
        last = self._clock.stamp(self._received[-1]) if self._looked < len(self._received) else self._now
        return (time.monotonic_ns() - last) / NS_PER_S

    def begin(self, request: bytes, exchange: Exchanged, *, silence_s: Seconds | None) -> None:
        """Write `request`; its answer goes to `exchange`. Nothing received for `silence_s` is a timeout."""
        self._exchange, self._busy, self._silence = exchange, True, silence_s
        self._received, self._looked = [], 0
        self._now = exchange.arrivals.sent_ns = time.monotonic_ns()
        try:
            sent = self._socket.send(request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._fail(httpx.WriteError(words(error)))
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
        unwatch(self._loop, self._socket.fileno())
        if self._unsent:
            self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        if self._busy:
            self._settle(httpx.ReadError("the connection was closed by the client"))

    def _readable(self) -> bool:
        """Keep what came in, and look at it only when it may be the end; whether it may be."""
        try:
            data, ancillary, _, _ = self._receive(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(httpx.ReadError(words(error)))
            return True
        self._received.append((ancillary or self._unstamped(data), data))
        if self._deferred and not data.endswith(_LAST) and len(data) >= len(_LAST):
            return False
        self._look()
        return True

    def _unstamped(self, data: bytes) -> Nanoseconds:
        self._exchange.arrivals.unstamped += bool(data)
        return time.monotonic_ns()

    def _look(self) -> None:
        """Let the parser find out how far the answer is."""
        new = self._received[self._looked :]
        if not new:
            return
        self._looked += len(new)
        self._now = self._clock.stamp(new[-1])
        try:
            self._parser.feed_data(b"".join([data for _, data in new]))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx.RemoteProtocolError(f"not HTTP/1.1: {error}"))
        if not new[-1][1] and not self.closed:
            self._ended_by_server()

    def _writable(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(httpx.WriteError(words(error)))
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
            exchange.chunked = value.lower() == b"chunked"

    def on_headers_complete(self) -> None:
        """The head is there. An interim answer (1xx) is not the answer: its headers are dropped."""
        exchange, status = self._exchange, self._parser.get_status_code()
        if status < 200:
            exchange.headers, exchange.framed, exchange.chunked = [], False, False
            return
        exchange.status = status
        self._deferred = exchange.chunked
        if not exchange.head.done():
            exchange.head.set_result(None)
        if exchange.headless:
            self._complete(reusable=False)

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
        exchange, self._busy, self._deferred = self._exchange, False, False
        arrivals = exchange.arrivals
        arrivals.ended_ns, arrivals.reads = self._now, len(self._received)
        arrivals.pieces = Body(self._received, self._clock)
        self._received, self._looked = [], 0
        for future in (exchange.head, exchange.end):
            if not future.done():
                future.set_result(error)

    def _watch(self) -> None:
        """One timer a connection, moved on when it fires and not at every arrival."""
        self._look()
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
