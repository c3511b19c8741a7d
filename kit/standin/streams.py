"""Streams of events over HTTP: one that ends when its client leaves, several merged into one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kit.standin.scheduler import Stream

__all__ = ["EventStream", "merged"]


async def merged(streams: Sequence[Stream]) -> AsyncGenerator[bytes, None]:
    """The chunks of several streams in the order in which they come."""
    waiting = {asyncio.ensure_future(stream.chunk()): stream for stream in streams}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                stream = waiting.pop(task)
                yield task.result()
                if not stream.delivered:
                    waiting[asyncio.ensure_future(stream.chunk())] = stream
    finally:
        for task in waiting:
            task.cancel()


class EventStream(Response):
    """A stream of events that ends early when the client goes away.

    Starlette's own streaming response watches the client from a task group for every request; a callback does.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events as the body."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        reader = asyncio.current_task()
        # The body has been read, so the next message says that the client is gone.
        gone = asyncio.ensure_future(receive())
        gone.add_done_callback(lambda watched: None if watched.cancelled() or reader is None else reader.cancel())
        try:
            async with contextlib.aclosing(self._events) as events:
                async for event in events:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        except asyncio.CancelledError:
            if gone.done():
                return
            raise
        finally:
            gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
