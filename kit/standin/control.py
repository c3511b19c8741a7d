"""The endpoints beside `/generate`: health, what the server says about itself, flushing, aborting."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response

from kit.standin.info import loads, model_info, server_info
from kit.standin.intake import Body
from kit.standin.journal import LOG
from kit.standin.running import Running
from kit.standin.text import detokenize, tokenize

__all__ = ["Control"]

_FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests,"
    " the operation will not be performed.)\n"
)


class Control:
    """The control endpoints of one running launch."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._launch = running.launch
        self._settings = running.launch.settings
        self._created = int(time.time())

    async def health(self, _: HttpRequest) -> Response:
        """GET /health and /health_generate: a generation of one token, unless others are under way."""
        if not self._running.ready:
            return Response(status_code=503)
        if not self._running.scheduler.busy:
            probe = Body(
                rid=f"HEALTH_CHECK_{uuid4().hex}",
                input_ids=[0],
                sampling_params={"max_new_tokens": 1, "temperature": 0.0},
            )
            await self._running.scheduler.submit(self._launch.intake.request(probe)).finished()
        return Response(status_code=200)

    async def ready(self, _: HttpRequest) -> Response:
        """GET /ready: the state without a generation."""
        return Response(status_code=200 if self._running.ready else 503)

    async def server_info(self, _: HttpRequest) -> Response:
        """GET /server_info and /get_server_info."""
        return _json(
            server_info(
                self._settings,
                scheduler=self._running.scheduler,
                journal=self._running.journal,
                trace=self._launch.trace,
                ready=self._running.ready,
            )
        )

    async def model_info(self, _: HttpRequest) -> Response:
        """GET /model_info and /get_model_info."""
        return _json(model_info(self._settings))

    async def models(self, _: HttpRequest) -> Response:
        """GET /v1/models."""
        name = self._settings.arguments["served_model_name"]
        model = {"id": name, "object": "model", "created": self._created, "owned_by": "sglang", "root": name}
        return _json(
            {"object": "list", "data": [model | {"parent": None, "max_model_len": self._settings.context_length}]}
        )

    async def loads(self, _: HttpRequest) -> Response:
        """GET /v1/loads."""
        head: dict[str, Any] = {
            "timestamp": datetime.now(UTC).isoformat(),
            "version": self._settings.dialect.version,
        }
        if self._settings.dialect.newer:
            head |= {"accelerator": None, "num_accelerators": 1}
        return _json(head | {"loads": [loads(self._settings, self._running.scheduler, self._running.journal)]})

    async def load(self, _: HttpRequest) -> Response:
        """GET /get_load, which later versions do not have."""
        engine = self._running.scheduler.engine
        return _json(
            [
                {
                    "dp_rank": 0,
                    "num_reqs": engine.running + engine.waiting,
                    "num_waiting_reqs": engine.waiting,
                    "num_tokens": engine.used_tokens,
                    "num_pending_tokens": 0,
                    "ts_tic": time.monotonic(),
                }
            ]
        )

    async def tokenize(self, http: HttpRequest) -> Response:
        """POST /tokenize."""
        tokens = tokenize((await http.json())["prompt"])
        return _json({"tokens": tokens, "count": len(tokens), "max_model_len": self._settings.context_length})

    async def detokenize(self, http: HttpRequest) -> Response:
        """POST /detokenize."""
        return _json({"text": detokenize((await http.json())["tokens"])})

    async def flush_cache(self, http: HttpRequest) -> Response:
        """GET or POST /flush_cache: 400 unless idle, or idle within `timeout` seconds."""
        until_s = time.monotonic() + float(http.query_params.get("timeout", 0))
        while self._running.scheduler.busy and time.monotonic() < until_s:
            await asyncio.sleep(0.01)
        if self._running.scheduler.busy:
            return PlainTextResponse("Flush cache failed.\n", status_code=400)
        self._launch.intake.flush()
        self._running.journal.reset()
        if self._launch.trace is not None:
            self._launch.trace.obey()
        LOG.info("Cache flushed successfully!")
        return Response(_FLUSHED, status_code=200)

    async def abort_request(self, http: HttpRequest) -> Response:
        """POST /abort_request: always 200; the rid is a prefix."""
        asked = orjson.loads(await http.body() or b"{}")
        if asked.get("abort_all") or asked.get("rid"):
            self._running.scheduler.abort("" if asked.get("abort_all") else asked["rid"])
        return Response(status_code=200)

    async def set_internal_state(self, _: HttpRequest) -> Response:
        """POST /set_internal_state: taken, and without effect here."""
        return _json([True])

    async def freeze_gc(self, _: HttpRequest) -> Response:
        """GET or POST /freeze_gc."""
        return Response("Garbage collection frozen.\n")

    async def start_profile(self, _: HttpRequest) -> Response:
        """GET or POST /start_profile: nothing is profiled here."""
        return Response("Start profiling.\n")

    async def stop_profile(self, _: HttpRequest) -> Response:
        """GET or POST /stop_profile."""
        return Response("Stop profiling. This will take some time.\n")


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
