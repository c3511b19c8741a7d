"""A server that is up, and the control endpoints that the kit asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import httpx

from kit.errors import ServerError
from kit.records import Origin
from kit.sglang import redact
from kit.units import Seconds

__all__ = ["Endpoint", "Order", "Runtime", "Server", "flush_cache", "is_ready", "server_info", "set_trace"]


@dataclass(frozen=True, slots=True)
class Order:
    """What to start: the SGLang version, its flags without host and port, its environment, where its files go.

    `launch` is the ordinal of the launch, which seeds the stand-in's noise; `arm` is whose server it is.
    """

    launch: int
    arm: str
    sglang: str
    flags: tuple[str, ...]
    env: dict[str, str]
    folder: Path
    startup_timeout_s: Seconds


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that answered: where, what was run, how long it took to come up, where its log and trace are."""

    base_url: str
    command: tuple[str, ...]
    startup_s: Seconds
    log: Path
    trace: Path


class Server(Protocol):
    """One server, from its start to its end."""

    def start(self) -> Endpoint:
        """Start it and wait until it is ready. Raises ServerError when it does not come up."""

    def stop(self) -> int | None:
        """Stop it and everything it started; its exit code, None when it was never started. Safe to call twice."""

    def log_text(self) -> str:
        """Its log so far."""


class Runtime(Protocol):
    """A way to run servers."""

    origin: Origin

    def server(self, order: Order) -> Server:
        """A server that has not been started yet."""

    def facts(self) -> dict[str, Any]:
        """What it knows about what it runs, as JSON values, for the header of the run."""


def is_ready(base_url: str) -> bool:
    """Whether the server is warm and takes requests."""
    try:
        return _client().get(f"{base_url}/health", timeout=30).status_code == 200
    except httpx.HTTPError:
        return False


def server_info(base_url: str) -> dict[str, Any]:
    """`/server_info` without secrets. Raises ServerError when it is not to be had."""
    response = _control("GET", f"{base_url}/server_info")
    info: dict[str, Any] = redact(response.json())
    return info


def flush_cache(base_url: str) -> None:
    """Empty every cache of an idle server. Raises ServerError when it refuses, which it does while busy."""
    _control("POST", f"{base_url}/flush_cache", params={"timeout": 30})


def set_trace(endpoint: Endpoint, *, on: bool) -> None:
    """Switch the iteration trace of an idle server on or off: a word in its folder, obeyed when caches are flushed.

    Raises ServerError when the server refuses to flush; whether it obeyed, `/server_info` tells (`trace_problem`).
    """
    (endpoint.trace / "control").write_text("on" if on else "off", encoding="ascii")
    flush_cache(endpoint.base_url)


@cache
def _client() -> httpx.Client:
    """One client for all control calls: each new one would read the certificate store again. It keeps no connection."""
    return httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def _control(method: str, url: str, **arguments: Any) -> httpx.Response:
    try:
        response = _client().request(method, url, timeout=60, **arguments)
        response.raise_for_status()
    except httpx.HTTPError as error:
        raise ServerError(f"{method} {url} failed ({error}); see the server's log in the run file") from error
    return response
