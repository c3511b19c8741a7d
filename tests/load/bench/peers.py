"""What the kit's transport is compared with: the least that can be done under uvloop, and httpx as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import cast

import httpx
import orjson

from kit.load import Exchange, Job
from kit.load.transport import StampedTransport

__all__ = ["bare", "httpx_per_worker"]

_END = b"\r\n0\r\n\r\n"


class _Bare(asyncio.Protocol):
    """Stamps and keeps whatever comes until the bytes look like the end of a body. No parser, no failure handling."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.pieces: list[tuple[int, bytes]] = []
        self.done: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.pieces.append((time.monotonic_ns(), data))
        if data.endswith(_END):
            self.done.set_result(None)

    def begin(self) -> None:
        self.pieces, self.done = [], self._loop.create_future()


async def bare(url: str, jobs: Sequence[Job], streams: int) -> list[Exchange]:
    """A protocol that keeps bytes, one a stream; run it under uvloop."""
    target = httpx.URL(url)
    exchanges = [Exchange(job.rid) for job in jobs]
    queue = iter(list(zip(exchanges, [_wire(target, job) for job in jobs], strict=True)))
    await asyncio.gather(*(_bare_worker(target, queue) for _ in range(streams)))
    return exchanges


async def _bare_worker(target: httpx.URL, queue: object) -> None:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(_Bare, target.host, target.port or 80)
    for exchange, wire in cast("Sequence[tuple[Exchange, bytes]]", queue):
        protocol.begin()
        exchange.sent_ns = time.monotonic_ns()
        protocol.transport.write(wire)
        await protocol.done
        exchange.ended_ns, exchange.pieces, exchange.status = protocol.pieces[-1][0], protocol.pieces, 200
    protocol.transport.close()


def _wire(target: httpx.URL, job: Job) -> bytes:
    body = orjson.dumps(job.payload)
    head = f"POST /generate HTTP/1.1\r\nhost: {target.host}:{target.port}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def httpx_per_worker(url: str, jobs: Sequence[Job], streams: int) -> list[Exchange]:
    """httpx with a client for each stream, its chunks stamped as the loop hands them over."""
    exchanges = [Exchange(job.rid) for job in jobs]
    queue = iter(list(zip(exchanges, jobs, strict=True)))
    await asyncio.gather(*(_httpx_worker(f"{url}/generate", queue) for _ in range(streams)))
    return exchanges


async def _httpx_worker(url: str, queue: object) -> None:
    async with httpx.AsyncClient(transport=StampedTransport(), trust_env=False, timeout=120) as client:
        for exchange, job in cast("Sequence[tuple[Exchange, Job]]", queue):
            async with client.stream("POST", url, content=orjson.dumps(job.payload)) as response:
                exchange.status, arrivals = response.status_code, response.extensions["arrivals"]
                async for _ in response.aiter_raw():
                    pass
            exchange.sent_ns, exchange.ended_ns, exchange.pieces = arrivals.sent_ns, arrivals.ended_ns, arrivals.pieces
