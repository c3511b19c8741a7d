"""The driver against a real HTTP server: a closed loop that loses no request and names every failure."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from kit.load import Job, Patience, drive, drive_schedule, run
from kit.load.metronome import Beat, Pattern, started
from kit.records import Outcome

in_flight: list[int] = []
now = 0


async def _slow(pieces: int, pause_s: float) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        yield b"data: {}\n\n"
        await asyncio.sleep(pause_s)


async def _cut() -> AsyncIterator[bytes]:
    yield b"data: {}\n\n"
    raise RuntimeError("the server breaks off")


async def generate(request: Request) -> Response:
    global now
    kind = (await request.json())["kind"]
    if kind == "500":
        return PlainTextResponse("", status_code=500)
    if kind == "cut":
        return StreamingResponse(_cut())
    if kind == "silent":
        return StreamingResponse(_slow(2, 60.0))
    if kind == "hang":
        return StreamingResponse(_slow(1000, 0.05))
    now += 1
    in_flight.append(now)
    await asyncio.sleep(0.02)
    now -= 1
    return StreamingResponse(_slow(2, 0.0))


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    config = uvicorn.Config(
        Starlette(routes=[Route("/generate", generate, methods=["POST"])]), port=0, log_level="critical"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def jobs(*kinds: str) -> list[Job]:
    return [Job(f"r{at:03d}", {"kind": kind}) for at, kind in enumerate(kinds)]


def test_exchanges_come_back_in_the_order_of_the_jobs_with_ordered_stamps(base_url: str) -> None:
    done: list[int] = []
    work = jobs(*["ok"] * 20)
    exchanges, health = run(drive(base_url, work, concurrency=4, patience=Patience(10), on_done=lambda: done.append(1)))
    assert [exchange.rid for exchange in exchanges] == [job.rid for job in work]
    assert len(done) == 20
    for exchange in exchanges:
        stamps = [exchange.sent_ns, *(at for at, _ in exchange.pieces), exchange.ended_ns]
        assert stamps == sorted(stamps)
        assert (exchange.status, exchange.broken) == (200, None)
    assert health.received_bytes > sum(len(data) for exchange in exchanges for _, data in exchange.pieces) > 0


def test_never_more_than_the_concurrency_is_in_flight_and_it_is_reached(base_url: str) -> None:
    in_flight.clear()
    run(drive(base_url, jobs(*["ok"] * 24), concurrency=6, patience=Patience(10)))
    assert max(in_flight) == 6


def test_each_failure_is_kept_with_its_kind_and_the_others_go_on(base_url: str) -> None:
    exchanges, _ = run(drive(base_url, jobs("500", "cut", "ok", "hang"), concurrency=2, patience=Patience(0.5)))
    assert [exchange.status for exchange in exchanges] == [500, 200, 200, 200]
    assert [exchange.broken for exchange in exchanges] == [None, Outcome.CUT, None, Outcome.TIMEOUT]
    assert len(exchanges[3].pieces) > 1


def test_a_refused_connection_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    exchanges, _ = run(drive(f"http://127.0.0.1:{port}", jobs("ok"), concurrency=1, patience=Patience(5)))
    assert exchanges[0].broken is Outcome.REFUSED


def test_connections_are_there_before_the_first_request_is_due(base_url: str) -> None:
    exchanges, health = run(drive(base_url, jobs(*["ok"] * 30), concurrency=30, patience=Patience(10)))
    sent = [exchange.sent_ns for exchange in exchanges]
    first_answer = min(exchange.pieces[0][0] for exchange in exchanges)
    assert health.connections == 30
    assert max(sent) < first_answer


def test_an_unknown_host_is_named() -> None:
    exchanges, _ = run(drive("http://nowhere.invalid", jobs("ok"), concurrency=1, patience=Patience(5)))
    assert (exchanges[0].broken, exchanges[0].status) == (Outcome.DNS, None)


def test_a_client_without_descriptors_loses_no_request_and_says_so() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with started(Beat(Pattern.STAGGERED, chunks=2, interval_s=0.1)) as url:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, hard))
            exchanges, health = run(drive(url, jobs(*["ok"] * 40), concurrency=40, patience=Patience(30)))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(exchanges) == 40
    assert any("open files" in (exchange.error or "") for exchange in exchanges)
    assert health.fd_headroom <= 0 < health.connections < 40


def test_an_open_loop_sends_by_the_clock_and_counts_from_when_a_request_was_due(base_url: str) -> None:
    in_flight.clear()
    due = [0.0, 0.0, 0.05, 0.1, 0.1, 0.1]
    exchanges, health = run(drive_schedule(base_url, jobs(*["ok"] * 6), due_s=due, patience=Patience(10)))
    starts = [(exchange.sent_ns - exchanges[0].sent_ns) / 1e9 for exchange in exchanges]
    assert starts == pytest.approx(due, abs=1e-6)
    assert all(exchange.written_ns - exchange.sent_ns >= 0 for exchange in exchanges)
    assert max(in_flight) > 1
    assert 0 < health.send_late_p99_s <= health.send_late_s


def test_an_open_loop_is_not_held_up_by_an_answer_that_does_not_come(base_url: str) -> None:
    exchanges, _ = run(
        drive_schedule(base_url, jobs("hang", "ok", "ok"), due_s=[0.0, 0.05, 0.1], patience=Patience(0.6))
    )
    assert [exchange.broken for exchange in exchanges] == [Outcome.TIMEOUT, None, None]
    assert exchanges[2].ended_ns < exchanges[0].ended_ns


def test_the_health_of_a_pass_says_what_the_client_did(base_url: str) -> None:
    _, health = run(drive(base_url, jobs(*["ok"] * 12), concurrency=3, patience=Patience(10)))
    assert (health.connections, health.stamps, health.spooled_bytes) == (3, "kernel", 0)
    assert health.cpu_share > 0
    assert 0 < health.send_late_p99_s <= health.send_late_s
    assert 0 < health.idle_share < 0.5
    assert health.fd_headroom > 0
    assert health.clock_step_s < 0.001


def test_a_server_that_sends_nothing_to_anybody_is_given_up_and_what_was_not_sent_stays_unsent(base_url: str) -> None:
    work = jobs("silent", "silent", "ok")
    exchanges, _ = run(drive(base_url, work, concurrency=2, patience=Patience(600, silence_s=0.4)))
    assert [exchange.broken for exchange in exchanges] == [Outcome.STALLED] * 3
    assert [exchange.status for exchange in exchanges] == [200, 200, None]
    assert [len(exchange.pieces) for exchange in exchanges] == [1, 1, 0]
    assert "not sent" in (exchanges[2].error or "")


def test_as_long_as_one_stream_flows_nobody_is_given_up(base_url: str) -> None:
    exchanges, _ = run(drive(base_url, jobs("silent", "hang"), concurrency=2, patience=Patience(1.5, silence_s=0.4)))
    assert [exchange.broken for exchange in exchanges] == [Outcome.TIMEOUT, Outcome.TIMEOUT]
