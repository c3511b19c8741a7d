"""Plays the engine against the clock: iterations end at absolute deadlines, then their tokens go to the streams."""

from __future__ import annotations

import asyncio
from typing import Protocol

from kit.standin.deaths import die
from kit.standin.engine import Engine
from kit.standin.iteration import Iteration
from kit.standin.journal import Journal
from kit.standin.request import Request
from kit.standin.trace import TraceFile
from kit.units import Seconds, Tokens

__all__ = ["Encode", "Scheduler", "Stream"]

# Deadlines are absolute: an iteration that ends before the next one should have delays its own tokens only. Later than
# that, or than this where iterations are short, the host no longer keeps up with the world.
_TOLERANCE_S: Seconds = 0.005
_RECEIVE_S: Seconds = 0.001


class Encode(Protocol):
    """Turns a stretch of a request's output into the bytes that are sent; `latency_s` once it has finished."""

    def __call__(self, request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None) -> bytes: ...


class Stream:
    """The output of one request as far as its iterations have ended. One reader waits for it."""

    __slots__ = ("_encode", "_news", "_prepared", "_read", "delivered", "finished_s", "request", "started_s", "tokens")

    def __init__(self, request: Request, *, started_s: Seconds, encode: Encode | None) -> None:
        self.request = request
        self.started_s = started_s
        self.finished_s: Seconds | None = None
        self.tokens: Tokens = 0
        self.delivered = False
        self._read: Tokens = 0
        self._news: asyncio.Future[None] | None = None
        self._encode = encode
        self._prepared: bytes | None = None

    @property
    def latency_s(self) -> Seconds | None:
        """From arrival to finish; None while running."""
        return None if self.finished_s is None else self.finished_s - self.started_s

    def prepare(self, *, ready_s: Seconds) -> None:
        """Encode what the iteration under way will bring, so that only sending is left to do at its end.

        Not for a reader that is behind, who gets several steps at once, nor for the first chunk, which says when it
        was sent.
        """
        self._prepared = None
        if self._encode is not None and self._read == self.tokens > 0:
            latency_s = None if self.request.finish is None else ready_s - self.started_s
            self._prepared = self._encode(
                self.request, since=self._read, until=self.request.produced, latency_s=latency_s
            )

    def publish(self, *, now_s: Seconds) -> None:
        """Make what the request has produced visible and wake the reader."""
        self.tokens = self.request.produced
        if self.request.finish is not None:
            self.finished_s = now_s
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def chunk(self) -> bytes:
        """Everything since the last chunk, as soon as there is something; `delivered` once that was the end."""
        if self._encode is None:
            raise RuntimeError(f"request {self.request.rid} is not streamed; await its end")
        since = self._read
        await self._more()
        self.delivered = self.finished_s is not None
        prepared, self._prepared = self._prepared, None
        return prepared or self._encode(self.request, since=since, until=self.tokens, latency_s=self.latency_s)

    async def finished(self) -> None:
        """Wait for the end."""
        while self.finished_s is None:
            await self._more()

    async def _more(self) -> None:
        if self._read == self.tokens and self.finished_s is None:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        self._read = self.tokens


class Scheduler:
    """The task that runs one engine in real time. A host with a `lag_s` ends every iteration that much late."""

    def __init__(self, engine: Engine, *, trace: TraceFile | None, journal: Journal, lag_s: Seconds = 0.0) -> None:
        self.engine = engine
        self.iterations = 0
        self.late = 0
        self._computing = False
        self._lag_s = lag_s
        self._trace = trace
        self._journal = journal
        self._streams: dict[str, Stream] = {}
        self._work = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def busy(self) -> bool:
        """Whether any request is unanswered or a ghost round still runs."""
        return bool(self._streams) or self._computing or not self.engine.idle

    def submit(self, request: Request, *, encode: Encode | None = None) -> Stream:
        """Queue a request, with `encode` if its chunks will be read. Raises ValueError when its rid is in flight."""
        if request.rid in self._streams:
            raise ValueError(f"Duplicate request ID detected: {request.rid}")
        stream = self._streams[request.rid] = Stream(request, started_s=self._loop.time(), encode=encode)
        self.engine.submit(request)
        if request.finish is not None:
            self._publish(request, now_s=self._loop.time())
        self._work.set()
        return stream

    def abort(self, prefix: str) -> None:
        """Abort all requests whose rid begins with `prefix`."""
        for request in self.engine.abort(prefix):
            self._publish(request, now_s=self._loop.time())

    async def run(self) -> None:
        """Run iterations for ever. A deadline follows from the one before, never from the time of waking up.

        An error ends the process: a server that answers nothing any more would only be waited for.
        """
        try:
            await self._iterate()
        except Exception as error:
            die(f"{type(error).__name__}: {error}")
            raise

    async def _iterate(self) -> None:
        begun_s = deadline_s = self._loop.time()
        while True:
            if self.engine.drained:
                await self._requests()
                begun_s = deadline_s = self._loop.time()
            # It was launched when the one before it began, or just now.
            launch_s, begun_s = begun_s, deadline_s
            iteration = self.engine.step()
            if iteration is None:
                continue
            self._computing = True
            deadline_s += iteration.duration_s
            for row in iteration.rows:
                if not row.ghost:
                    self._streams[row.request.rid].prepare(ready_s=deadline_s)
            await asyncio.sleep(max(0.0, deadline_s - self._loop.time()) + self._lag_s)
            self._end(iteration, launch_s=launch_s, ready_s=deadline_s)
            self._computing = False
            # The tokens leave before the next iteration is composed.
            await asyncio.sleep(0)

    async def _requests(self) -> None:
        """Wait until a request is there, and then as long as SGLang takes to receive it and those that came with it."""
        if not self.engine.idle:
            return
        self._work.clear()
        await self._work.wait()
        received = 0
        while received != self.engine.waiting:
            received = self.engine.waiting
            await asyncio.sleep(_RECEIVE_S)

    def _end(self, iteration: Iteration, *, launch_s: Seconds, ready_s: Seconds) -> None:
        self.iterations += 1
        self.late += self._loop.time() > ready_s + max(_TOLERANCE_S, iteration.duration_s)
        if self._trace is not None:
            self._trace.write(iteration, launch_s=launch_s, ready_s=ready_s)
        for row in iteration.rows:
            if not row.ghost:
                self._publish(row.request, now_s=ready_s)
        self._journal.record(iteration, engine=self.engine, now_s=ready_s)

    def _publish(self, request: Request, *, now_s: Seconds) -> None:
        stream = self._streams[request.rid]
        stream.publish(now_s=now_s)
        if request.finish is not None:
            del self._streams[request.rid]
