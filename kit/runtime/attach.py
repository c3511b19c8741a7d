"""Servers that somebody else started: asked, loaded, and left as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit.errors import ServerError
from kit.records import Origin
from kit.runtime.endpoint import Endpoint, Order, Server, is_ready

__all__ = ["AttachRuntime"]


class AttachRuntime:
    """One running server an arm, by URL. Nothing is known of how it was started, and nothing is done to it."""

    origin = Origin.ATTACHED

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._urls = urls

    def server(self, order: Order) -> Server:
        return _Attached(self._urls[order.arm], order)

    def facts(self) -> dict[str, Any]:
        return {}


class _Attached:
    """A `Server` without a life cycle."""

    def __init__(self, url: str, order: Order) -> None:
        self._url = url
        self._order = order

    def start(self) -> Endpoint:
        (self._order.folder / "trace").mkdir(parents=True)
        log = self._order.folder / "server.log"
        log.touch()
        if not is_ready(self._url):
            raise ServerError(f"nothing answers at {self._url}: start the server of arm `{self._order.arm}` there")
        return Endpoint(self._url, (), 0.0, log, self._order.folder / "trace")

    def stop(self) -> int | None:
        return None

    def log_text(self) -> str:
        return ""
