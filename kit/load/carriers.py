"""How the driver gets a body to a server: over the kit's own transport, or over httpx's where there is https.

Neither goes through `httpx.AsyncClient`, which takes a tenth of a millisecond a request to build and follow one.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import httpx

from kit.load.arrivals import Arrivals, WallClock
from kit.load.connection import Exchanged
from kit.load.stream import Exchange
from kit.load.transport import RecordingTransport, StampedTransport
from kit.units import Seconds

__all__ = ["Carrier", "carrier_for"]

_CONNECT_S: Final[Seconds] = 10.0
_TYPE: Final = "application/json"


class Carrier(Protocol):
    """Posts bodies to one URL."""

    clock: WallClock

    async def open(self, connections: int) -> None:
        """Connect before the first request, as far as it goes: what fails here fails again where it is counted."""

    async def post(self, body: bytes, arrivals: Arrivals, exchange: Exchange) -> None:
        """Send one body and wait for the end of its answer, whose status is in `exchange` as soon as it has one.

        Raises httpx.HTTPError.
        """

    @property
    def connections(self) -> int:
        """How many are open."""

    @property
    def silent_s(self) -> Seconds:
        """Time since anything came in on any of them; 0 where nobody can tell."""

    async def aclose(self) -> None:
        """Close them."""


def carrier_for(url: str) -> Carrier:
    """The kit's own for http, httpx's for anything else."""
    target = httpx.URL(url)
    return _Own(target) if target.scheme == "http" else _Stock(target)


class _Own:
    """The kit's transport. All but the length of the body is written once."""

    def __init__(self, url: httpx.URL) -> None:
        self._transport = RecordingTransport()
        self.clock = self._transport.clock
        self._origin = url.host, url.port or 80
        self._head = b"POST %b HTTP/1.1\r\nHost: %b\r\nAccept: */*\r\nContent-Type: %b\r\nContent-Length: " % (
            url.raw_path,
            url.netloc,
            _TYPE.encode(),
        )

    async def open(self, connections: int) -> None:
        await self._transport.open(self._origin, connections, timeout_s=_CONNECT_S)

    async def post(self, body: bytes, arrivals: Arrivals, exchange: Exchange) -> None:
        wire = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        carried = Exchanged(asyncio.get_running_loop(), arrivals, headless=False)
        try:
            await self._transport.carry(self._origin, wire, carried, connect_s=_CONNECT_S)
        finally:
            exchange.status = carried.status or None

    @property
    def connections(self) -> int:
        return self._transport.open_connections

    @property
    def silent_s(self) -> Seconds:
        return self._transport.silent_s

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Stock:
    """httpx's transport, one a request in flight, because a pool shared by many streams serialises them."""

    def __init__(self, url: httpx.URL) -> None:
        self.clock = WallClock.now()
        self._url = url
        self._all: list[StampedTransport] = []
        self._free: list[StampedTransport] = []

    async def open(self, connections: int) -> None:
        """Nothing: httpx connects with the first request."""

    async def post(self, body: bytes, arrivals: Arrivals, exchange: Exchange) -> None:
        transport = self._take()
        try:
            response = await transport.handle_async_request(self._request(body, arrivals))
            exchange.status = response.status_code
            try:
                async for _ in response.stream:  # type: ignore[union-attr]
                    pass
            finally:
                await response.aclose()
        finally:
            self._free.append(transport)

    def _request(self, body: bytes, arrivals: Arrivals) -> httpx.Request:
        timeout = httpx.Timeout(None, connect=_CONNECT_S)
        extensions = {"timeout": timeout.as_dict(), "arrivals": arrivals}
        return httpx.Request("POST", self._url, content=body, headers={"Content-Type": _TYPE}, extensions=extensions)

    def _take(self) -> StampedTransport:
        if self._free:
            return self._free.pop()
        self._all.append(StampedTransport())
        return self._all[-1]

    @property
    def connections(self) -> int:
        return len(self._all)

    @property
    def silent_s(self) -> Seconds:
        """httpx does not tell."""
        return 0.0

    async def aclose(self) -> None:
        for transport in self._all:
            await transport.aclose()
