"""`/generate`: one answer, a list of them, or a stream; with SGLang's statuses, bodies and ways to fail."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from kit.standin import answers
from kit.standin.deaths import illegal_memory_access
from kit.standin.faults import Strike
from kit.standin.intake import Body
from kit.standin.journal import LOG
from kit.standin.request import Request
from kit.standin.running import Running
from kit.standin.scheduler import Stream
from kit.standin.streams import EventStream, merged
from kit.standin.strikes import disturbed, log_exception, misspelt, never, spoil
from kit.units import Seconds, Tokens

__all__ = ["Generate"]


class Generate:
    """The endpoint of one running launch."""

    def __init__(self, running: Running) -> None:
        settings = running.launch.settings
        self._running = running
        self._launch = running.launch
        self._asked = 0
        self._incremental = settings.arguments["incremental_streaming_output"]
        tokens = settings.arguments["speculative_num_draft_tokens"]
        self._wording = answers.Wording(settings.dialect, proposals=tokens - 1 if settings.speculation else 0)

    async def __call__(self, http: HttpRequest) -> Response:
        """POST or PUT /generate."""
        try:
            body = Body.model_validate(orjson.loads(await http.body()))
        except (orjson.JSONDecodeError, ValidationError) as error:
            return _json(answers.http_error(str(error), kind="Bad Request", code=400), 400)
        refusal = self._launch.intake.refusal(body)
        if refusal is not None:
            return _json({"error": refusal}, 400)
        strike = self._strike()
        if strike is Strike.HTTP_500_EMPTY:
            log_exception()
            return Response(status_code=500)
        if strike is Strike.HTTP_503:
            return _json(answers.http_error("The server is overloaded.", kind="503", code=503), 503)
        if body.stream:
            return EventStream(disturbed(self._events(body, strike), strike))
        return await self._whole(body, strike)

    def _strike(self) -> Strike | None:
        self._asked += 1
        crash_after = self._launch.faults.crash_after
        if crash_after is not None and self._asked > crash_after:
            illegal_memory_access()
        return self._launch.faults.strike(self._asked)

    def _submit(self, body: Body, strike: Strike | None) -> list[Stream]:
        requests = self._launch.intake.requests(body)
        for request in requests:
            spoil(request, strike)
        encode = self._event if body.stream else None
        if not body.batched:
            return [self._running.scheduler.submit(requests[0], encode=encode)]
        return [
            self._running.scheduler.submit(request, encode=encode and partial(encode, index=index))
            for index, request in enumerate(requests)
        ]

    async def _whole(self, body: Body, strike: Strike | None) -> Response:
        if strike is Strike.HANG:
            await never()
        try:
            streams = self._submit(body, strike)
        except ValueError as error:
            LOG.error("[http_server] Error: %s", error)
            return _json(answers.value_error(str(error)), 400)
        for stream in streams:
            await stream.finished()
            finish = stream.request.finish or {}
            if code := finish.get("status_code"):
                return _json(answers.http_error(finish["message"], kind=str(code), code=code), code)
        contents = [
            self._answer(stream.request, since=0, until=stream.tokens, latency_s=stream.latency_s) for stream in streams
        ]
        response = _json(contents if body.batched else contents[0])
        return _misspelt(response) if strike is Strike.MALFORMED else response

    async def _events(self, body: Body, strike: Strike | None) -> AsyncGenerator[bytes, None]:
        """The stream of one body. It has begun with 200 by the time that a bad request is noticed."""
        if strike is Strike.HANG:
            await never()
        try:
            streams = self._submit(body, strike)
        except ValueError as error:
            LOG.error("[http_server] Error: %s", error)
            yield answers.event(answers.stream_error(str(error))) + answers.DONE
            return
        try:
            if body.batched:
                async for chunk in merged(streams):
                    yield chunk
                yield answers.DONE
            else:
                while not streams[0].delivered:
                    yield await streams[0].chunk()
        finally:
            for stream in streams:
                if stream.finished_s is None:
                    self._running.scheduler.abort(stream.request.rid)

    def _event(
        self,
        request: Request,
        *,
        since: Tokens,
        until: Tokens,
        latency_s: Seconds | None,
        index: int | None = None,
    ) -> bytes:
        """One event of a stream; the only stream of a body closes with its last event."""
        content = self._answer(request, since=since, until=until, latency_s=latency_s)
        if index is not None:
            return answers.event(content | {"index": index})
        event = answers.event(content)
        return event if latency_s is None else event + answers.DONE

    def _answer(self, request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None) -> dict[str, Any]:
        """Output tokens after `since`, or all of them where streams are cumulative."""
        content = self._wording.answer(
            request, since=since if self._incremental else 0, until=until, latency_s=latency_s
        )
        if not since:
            content["meta_info"]["response_sent_to_client_ts"] = time.time()
        return content


def _misspelt(response: Response) -> Response:
    return Response(misspelt(bytes(response.body)), media_type=response.media_type)


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status_code=status, media_type="application/json")
