"""One trial of a way to send requests, against a server whose times are known: what it costs and how true it is."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import orjson

from kit.load.arrivals import Piece
from kit.load.driver import Job, Patience, drive
from kit.load.metronome import Beat
from kit.load.stream import Exchange, events
from kit.units import NS_PER_S

__all__ = ["Figures", "Sender", "attempt", "jobs_for", "medians", "own"]

Sender = Callable[[str, Sequence[Job], int], Awaitable[list[Exchange]]]
"""Sends jobs to a URL with so many in flight; the exchanges hold stamps and raw bytes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one window showed.

    CPU is that of the sending process, without the parsing that follows. `fraction_of_ideal` is the request rate over
    the one at which no stream ever waits for the client. TTFT errors are arrival stamps against the server's own.
    """

    requests: int
    cpu_ms_per_request: float
    us_per_chunk: float
    fraction_of_ideal: float
    ttft_error_ms: float
    ttft_error_p99_ms: float


async def own(url: str, jobs: Sequence[Job], streams: int) -> list[Exchange]:
    """The kit's own driver."""
    return (await drive(url, jobs, concurrency=streams, patience=Patience(120)))[0]


def jobs_for(*, streams: int, rounds: int) -> list[Job]:
    """`rounds` requests a stream, of the size that a prompt of a hundred tokens has."""
    sampling = {"temperature": 0, "max_new_tokens": 64}
    return [
        Job(f"r{at:06d}", {"rid": f"r{at:06d}", "text": "word " * 100, "sampling_params": sampling, "stream": True})
        for at in range(streams * rounds)
    ]


async def attempt(sender: Sender, url: str, beat: Beat, *, streams: int, rounds: int) -> Figures:
    """One window of `rounds` requests on each of `streams` streams.

    Raises ValueError when an answer is not the one that the server sends: a fast reader that loses bytes is no reader.
    """
    jobs = jobs_for(streams=streams, rounds=rounds)
    await sender(url, jobs[:1], 1)  # what is imported or made once belongs to no request
    gc.collect()
    cpu = time.process_time()
    exchanges = await sender(url, jobs, streams)
    cpu = time.process_time() - cpu
    firsts, server = zip(*(_first(exchange.pieces, beat) for exchange in exchanges), strict=True)
    errors = np.abs(np.array(firsts) - np.array(server)) / 1e6
    begin = min(firsts) - beat.interval_s * NS_PER_S
    span_s = (max(exchange.ended_ns for exchange in exchanges) - begin) / NS_PER_S
    return Figures(
        requests=len(jobs),
        cpu_ms_per_request=cpu * 1000 / len(jobs),
        us_per_chunk=cpu * 1e6 / len(jobs) / beat.chunks,
        fraction_of_ideal=rounds * beat.request_s / span_s,
        ttft_error_ms=float(np.median(errors)),
        ttft_error_p99_ms=float(np.quantile(errors, 0.99)),
    )


def _first(pieces: Sequence[Piece], beat: Beat) -> tuple[int, int]:
    """(arrival, the server's own stamp) of the first event of an answer that is whole."""
    parts = [(at, orjson.loads(data)) for at, data in events(pieces) if data != b"[DONE]"]
    counts = [event["meta_info"]["completion_tokens"] for _, event in parts]
    if counts != list(range(1, beat.chunks + 1)):
        raise ValueError(f"an answer holds {len(counts)} of {beat.chunks} events, or not in order")
    return parts[0][0], int(parts[0][1]["meta_info"]["sent_ns"])


def medians(windows: Sequence[Figures]) -> Figures:
    """Field by field over windows; requests are added."""
    return Figures(
        requests=sum(each.requests for each in windows),
        cpu_ms_per_request=median(each.cpu_ms_per_request for each in windows),
        us_per_chunk=median(each.us_per_chunk for each in windows),
        fraction_of_ideal=median(each.fraction_of_ideal for each in windows),
        ttft_error_ms=median(each.ttft_error_ms for each in windows),
        ttft_error_p99_ms=median(each.ttft_error_p99_ms for each in windows),
    )
