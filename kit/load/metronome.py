"""`python -m kit.load.metronome`: a server that emits at known times, to measure a load generator with.

It answers like SGLang with cumulative JSON events, so many milliseconds apart, and writes into each first event when it
was sent (`sent_ns`, monotonic clock, which all processes of a host share). Either every stream counts from its own
request (staggered), or all emit in the same instant (lockstep), as a batching engine does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

import httptools

from kit.errors import ServerError
from kit.units import Seconds

__all__ = ["Beat", "Pattern", "started"]

_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nserver: metronome\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
# As many digits as a monotonic clock in nanoseconds can have within 31 years of its start.
_SLOT: Final = b"000000000000000000"


class Pattern(StrEnum):
    """When streams emit, seen next to each other."""

    STAGGERED = "staggered"
    LOCKSTEP = "lockstep"


@dataclass(frozen=True, slots=True)
class Beat:
    """What every answer looks like: `chunks` events, `interval_s` apart, the first one interval after the request."""

    pattern: Pattern
    chunks: int = 64
    interval_s: Seconds = 0.02

    @property
    def request_s(self) -> Seconds:
        """Duration of a request that nobody delays."""
        return self.chunks * self.interval_s

    def events(self) -> list[bytes]:
        """The events as HTTP chunks; the last one closes the body."""
        made = [_framed(b"data: " + _event(count, self.chunks) + b"\n\n") for count in range(1, self.chunks + 1)]
        made[-1] += _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        return made


def _event(count: int, total: int) -> bytes:
    """One event of `count` tokens out of `total`, of the size that SGLang's have."""
    finish = {"type": "length", "length": total} if count == total else None
    meta = {
        "id": "r" * 16,
        "finish_reason": finish,
        "prompt_tokens": 100,
        "weight_version": "default",
        "total_retractions": 0,
        "completion_tokens": count,
        "cached_tokens": 0,
        "e2e_latency": 0.5,
        "sent_ns": "?",
    }
    body = {"text": "word " * count, "output_ids": [10_000 + at for at in range(count)], "meta_info": meta}
    return json.dumps(body).encode().replace(b'"?"', b'"' + _SLOT + b'"')


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class _Stream(asyncio.Protocol):
    """One connection: answers request after request."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._at = 0
        self._due: Seconds = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.playing.discard(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """A request is there."""
        self._at = 0
        self._transport.write(_HEAD)
        self._server.playing.add(self)
        if self._server.beat.pattern is Pattern.STAGGERED:
            self._due = self._loop.time()
            self._next()

    def _next(self) -> None:
        self._due += self._server.beat.interval_s
        self._loop.call_at(self._due, self._alone)

    def _alone(self) -> None:
        if self in self._server.playing:
            self.emit()
            if self in self._server.playing:
                self._next()

    def emit(self) -> None:
        """Write the next event."""
        event = self._server.events[self._at]
        if self._at == 0:
            event = event.replace(_SLOT, b"%018d" % time.monotonic_ns())
        self._at += 1
        self._transport.write(event)
        if self._at == len(self._server.events):
            self._server.playing.discard(self)


class _Server:
    """Streams that are being answered, and the beat."""

    def __init__(self, beat: Beat) -> None:
        self.beat = beat
        self.events = beat.events()
        self.playing: set[_Stream] = set()

    async def serve(self) -> None:
        """Print the port and serve until killed."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Stream(self), "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        if self.beat.pattern is Pattern.LOCKSTEP:
            self._tick(loop, loop.time())
        await server.serve_forever()

    def _tick(self, loop: asyncio.AbstractEventLoop, due: Seconds) -> None:
        for stream in list(self.playing):
            stream.emit()
        due += self.beat.interval_s
        loop.call_at(due, self._tick, loop, due)


@contextmanager
def started(beat: Beat) -> Iterator[str]:
    """The URL of a metronome in a process of its own. Raises ServerError when it does not start."""
    flags = ("--pattern", beat.pattern, "--chunks", str(beat.chunks), "--interval", str(beat.interval_s))
    command = (sys.executable, "-m", "kit.load.metronome", *flags)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            if not port:
                raise ServerError(f"`{' '.join(command)}` did not start; run it by hand to see why")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def main() -> None:
    """Serve the beat that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pattern", type=Pattern, default=Pattern.STAGGERED)
    parser.add_argument("--chunks", type=int, default=64)
    parser.add_argument("--interval", type=float, default=0.02)
    given = parser.parse_args()
    gc.disable()
    asyncio.run(_Server(Beat(given.pattern, given.chunks, given.interval)).serve())


if __name__ == "__main__":
    main()
