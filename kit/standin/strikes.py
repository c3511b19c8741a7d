"""What a fault does to the request that it strikes: to the request itself, and to the events of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kit.standin import answers
from kit.standin.faults import Strike
from kit.standin.request import Request

__all__ = ["BodyCut", "disturbed", "log_exception", "misspelt", "never", "spoil"]


class BodyCut(Exception):
    """Breaks a body off after its headers, as an exception in the server does."""


def spoil(request: Request, strike: Strike | None) -> None:
    """Change how a request will end."""
    match strike:
        case Strike.ABORT:
            request.abort = "Aborted by AbortReq."
        case Strike.EMPTY_OUTPUT:
            request.max_new_tokens = 0
        case Strike.NAN:
            request.stop_at, request.matched = 0, "NaN happened"


async def disturbed(events: AsyncGenerator[bytes, None], strike: Strike | None) -> AsyncGenerator[bytes, None]:
    """The events of an answer as far as they come, and as they come."""
    async with aclosing(events):
        async for event in events:
            yield misspelt(event) if strike is Strike.MALFORMED else event
            if strike is Strike.CUT_BODY:
                raise BodyCut("the body is cut here, as asked for")
            if strike is Strike.STREAM_ERROR:
                error = answers.stream_error("Internal error in the scheduler", kind="internal_error", code=500)
                yield answers.event(error) + answers.DONE
                return


def misspelt(answer: bytes) -> bytes:
    """An answer without a key that it must have."""
    return answer.replace(b'"completion_tokens"', b'"tokens_completed"')


def log_exception() -> None:
    """What the log of a server says when one of its handlers raised: the only place that tells why it answered 500."""
    try:
        raise RuntimeError("the handler fails here, as asked for")
    except RuntimeError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")


async def never() -> None:
    """Wait for ever."""
    await asyncio.get_running_loop().create_future()
