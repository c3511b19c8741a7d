"""The HTTP side: SGLang's endpoints as a Starlette application, with its statuses, bodies and failures."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kit.standin import answers
from kit.standin.engine import Engine, Request
from kit.standin.info import model_info, server_info
from kit.standin.intake import Body, Intake
from kit.standin.journal import LOG, Journal
from kit.standin.scheduler import Scheduler
from kit.standin.settings import Settings
from kit.standin.trace import TraceFile
from kit.standin.world import World
from kit.units import Seconds, Tokens

__all__ = ["Launch", "application"]

_FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests,"
    " the operation will not be performed.)\n"
)
_WARMUP = Body(text="The capital city of France is", sampling_params={"temperature": 0, "max_new_tokens": 8})


@dataclass(frozen=True, slots=True)
class Launch:
    """What one server process plays."""

    world: World
    settings: Settings
    intake: Intake
    launch_seed: int
    trace: TraceFile | None


class Service:
    """The endpoints of one launch."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._settings = launch.settings
        self._ready = False
        self._incremental = launch.settings.arguments["incremental_streaming_output"]
        tokens = launch.settings.arguments["speculative_num_draft_tokens"]
        self._proposals = tokens - 1 if launch.settings.speculation else 0
        self.journal = Journal(
            interval=launch.settings.arguments["decode_log_interval"],
            pool_tokens=launch.settings.limits.pool_tokens,
            largest_graph=launch.settings.largest_graph,
        )
        self.engine = Engine(
            launch.world,
            speculation=launch.settings.speculation,
            limits=launch.settings.limits,
            launch_seed=launch.launch_seed,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the scheduler beside the application and warm it up."""
        self.scheduler = Scheduler(self.engine, trace=self._launch.trace, journal=self.journal)
        tasks = [asyncio.create_task(self.scheduler.run()), asyncio.create_task(self._warm_up())]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._launch.trace is not None:
            self._launch.trace.close()

    async def _warm_up(self) -> None:
        await asyncio.sleep(self._launch.world.startup_s)
        if not self._settings.arguments["skip_server_warmup"]:
            await self.scheduler.submit(self._launch.intake.request(_WARMUP)).finished()
        self._ready = True
        LOG.info("The server is fired up and ready to roll!")

    async def generate(self, http: HttpRequest) -> Response:
        """POST /generate."""
        try:
            body = Body.model_validate(orjson.loads(await http.body()))
        except (orjson.JSONDecodeError, ValidationError) as error:
            return _json(answers.validation_error(str(error)), 400)
        if body.stream:
            return EventStream(self._events(body))
        try:
            stream = self.scheduler.submit(self._launch.intake.request(body))
        except ValueError as error:
            LOG.error("[http_server] Error: %s", error)
            return _json(answers.value_error(str(error)), 400)
        await stream.finished()
        return _json(self._answer(stream.request, since=0, until=stream.tokens, latency_s=stream.latency_s))

    async def _events(self, body: Body) -> AsyncGenerator[bytes, None]:
        """The stream of one request. It has begun with 200 by the time that a bad request is noticed."""
        try:
            stream = self.scheduler.submit(self._launch.intake.request(body), encode=self._event)
        except ValueError as error:
            LOG.error("[http_server] Error: %s", error)
            yield answers.event(answers.stream_error(str(error)))
            yield answers.DONE
            return
        try:
            while stream.finished_s is None:
                yield await stream.chunk()
        finally:
            if stream.finished_s is None:
                self.scheduler.abort(stream.request.rid)

    def _event(self, request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None) -> bytes:
        event = answers.event(self._answer(request, since=since, until=until, latency_s=latency_s))
        return event if latency_s is None else event + answers.DONE

    def _answer(self, request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None) -> dict[str, Any]:
        """Output tokens after `since`, or all of them where streams are cumulative."""
        content = answers.answer(
            request,
            since=since if self._incremental else 0,
            until=until,
            latency_s=latency_s,
            proposals=self._proposals,
        )
        if not since:
            content["meta_info"]["response_sent_to_client_ts"] = time.time()
        return content

    async def health(self, _: HttpRequest) -> Response:
        """GET /health and /health_generate: a generation of one token, unless others are under way."""
        if not self._ready:
            return Response(status_code=503)
        if not self.scheduler.busy:
            probe = Body(
                rid=f"HEALTH_CHECK_{uuid4().hex}",
                input_ids=[0],
                sampling_params={"max_new_tokens": 1, "temperature": 0.0},
            )
            await self.scheduler.submit(self._launch.intake.request(probe)).finished()
        return Response(status_code=200)

    async def server_info(self, _: HttpRequest) -> Response:
        """GET /server_info and /get_server_info."""
        return _json(
            server_info(
                self._settings,
                scheduler=self.scheduler,
                journal=self.journal,
                trace=self._launch.trace,
                ready=self._ready,
            )
        )

    async def model_info(self, _: HttpRequest) -> Response:
        """GET /model_info."""
        return _json(model_info(self._settings))

    async def flush_cache(self, http: HttpRequest) -> Response:
        """GET or POST /flush_cache: 400 unless idle, or idle within `timeout` seconds."""
        until_s = time.monotonic() + float(http.query_params.get("timeout", 0))
        while self.scheduler.busy and time.monotonic() < until_s:
            await asyncio.sleep(0.01)
        if self.scheduler.busy:
            return PlainTextResponse("Flush cache failed.\n", status_code=400)
        self._launch.intake.flush()
        self.journal.reset()
        LOG.info("Cache flushed successfully!")
        return Response(_FLUSHED, status_code=200)

    async def abort_request(self, http: HttpRequest) -> Response:
        """POST /abort_request: always 200; the rid is a prefix."""
        asked = orjson.loads(await http.body() or b"{}")
        if asked.get("abort_all") or asked.get("rid"):
            self.scheduler.abort("" if asked.get("abort_all") else asked["rid"])
        return Response(status_code=200)


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


def application(launch: Launch) -> Starlette:
    """The ASGI application of one launch."""
    service = Service(launch)
    both = ["GET", "POST"]
    return Starlette(
        routes=[
            Route("/generate", service.generate, methods=["POST", "PUT"]),
            Route("/health", service.health),
            Route("/health_generate", service.health),
            Route("/server_info", service.server_info),
            Route("/get_server_info", service.server_info),
            Route("/model_info", service.model_info),
            Route("/get_model_info", service.model_info),
            Route("/flush_cache", service.flush_cache, methods=both),
            Route("/abort_request", service.abort_request, methods=["POST"]),
        ],
        exception_handlers={404: _not_found},
        lifespan=service.lifespan,
    )


async def _not_found(_: HttpRequest, __: Exception) -> Response:
    return _json({"detail": "Not Found"}, 404)


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status_code=status, media_type="application/json")
