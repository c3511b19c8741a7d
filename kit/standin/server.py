"""The HTTP side: the endpoints of the imitated version as a Starlette application."""

from __future__ import annotations

import json

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from kit.standin.control import Control
from kit.standin.generate import Generate
from kit.standin.running import Launch, Running

__all__ = ["application"]


def application(launch: Launch) -> Starlette:
    """The ASGI application of one launch; what its version lacks or the stand-in leaves out is a 404."""
    running = Running(launch)
    there = launch.settings.dialect.endpoints
    return Starlette(
        routes=[route for route in _routes(Generate(running), Control(running)) if route.path in there],
        exception_handlers={HTTPException: _http_exception},
        lifespan=running.lifespan,
    )


def _routes(generate: Generate, control: Control) -> list[Route]:
    post, both = ["POST"], ["GET", "POST"]

    async def answer(http: HttpRequest) -> Response:
        return await generate(http)

    return [
        Route("/generate", answer, methods=["POST", "PUT"]),
        Route("/health", control.health),
        Route("/health_generate", control.health),
        Route("/ready", control.ready),
        Route("/server_info", control.server_info),
        Route("/get_server_info", control.server_info),
        Route("/model_info", control.model_info),
        Route("/get_model_info", control.model_info),
        Route("/v1/models", control.models),
        Route("/v1/loads", control.loads),
        Route("/get_load", control.load),
        Route("/tokenize", control.tokenize, methods=post),
        Route("/detokenize", control.detokenize, methods=post),
        Route("/flush_cache", control.flush_cache, methods=both),
        Route("/abort_request", control.abort_request, methods=post),
        Route("/set_internal_state", control.set_internal_state, methods=["POST", "PUT"]),
        Route("/freeze_gc", control.freeze_gc, methods=both),
        Route("/start_profile", control.start_profile, methods=both),
        Route("/stop_profile", control.stop_profile, methods=both),
    ]


async def _http_exception(_: HttpRequest, error: Exception) -> Response:
    """An unknown path or method."""
    if not isinstance(error, HTTPException):
        raise error
    content = json.dumps({"detail": error.detail}, separators=(",", ":"))
    return Response(content, error.status_code, headers=error.headers, media_type="application/json")
