"""The transport against a server that says exact bytes: framing, stamps, and every way in which an answer can fail."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import httpx
import pytest

from kit.load.arrivals import Arrivals, WallClock, coalesced
from kit.load.loop import run
from kit.load.transport import RecordingTransport, StampedTransport
from tests.load.scripted import CHUNKED, Play, Scripted, close, pause, playing, reset, say

Result = TypeVar("Result")
execute: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run
HELLO = say(CHUNKED + b"5\r\nhello\r\n0\r\n\r\n")


def client(work: Callable[[httpx.AsyncClient], Awaitable[Result]], *, timeout: float = 5.0) -> Result:
    """The result of `work` with a client on the transport."""

    async def body() -> Result:
        async with httpx.AsyncClient(transport=RecordingTransport(), timeout=timeout) as ready:
            return await work(ready)

    result: Result = execute(body())
    return result


@pytest.fixture(params=[asyncio.run, run], ids=["any loop", "stream loop"], autouse=True)
def _both_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs in asyncio's loop, where readers are asked by it, and in the kit's own."""
    monkeypatch.setattr(sys.modules[__name__], "execute", request.param)


def asked(server: Scripted, *, method: str = "POST", timeout: float = 5.0) -> httpx.Response:
    """One request and its whole answer."""
    return client(lambda ready: ready.request(method, server.url, content=b"{}"), timeout=timeout)


def arrivals(response: httpx.Response) -> Arrivals:
    """What the answer brought along."""
    found: Arrivals = response.extensions["arrivals"]
    return found


WHOLE: dict[str, tuple[list[Play], bytes]] = {
    "chunked": ([HELLO], b"hello"),
    "chunked with extension and trailer": ([say(CHUNKED + b"5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n")], b"hello"),
    "byte by byte": ([say(bytes([one])) for one in CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"], b"hello"),
    "an end that lies inside the data": (
        [say(CHUNKED + b"c\r\nab\r\n0\r\n\r\ncde\r\n0\r\n\r\n")],
        b"ab\r\n0\r\n\r\ncde",
    ),
    "a trailer that comes alone": (
        [say(CHUNKED + b"5\r\nhello\r\n0\r\n"), say(b"x: y\r\n"), say(b"\r\n")],
        b"hello",
    ),
    "with a length": ([say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")], b"hello"),
    "until the connection ends": ([say(b"HTTP/1.1 200 OK\r\n\r\nhel"), say(b"lo"), close], b"hello"),
    "after interim answers": (
        [say(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"), HELLO],
        b"hello",
    ),
    "without a body": ([say(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")], b""),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_answer_is_read_however_it_is_framed(name: str) -> None:
    plays, body = WHOLE[name]
    with playing(*plays) as server:
        response = asked(server)
    assert (response.status_code, response.content) == (200, body)
    assert "link" not in response.headers
    kept = arrivals(response)
    assert b"".join(data for _, data in kept.pieces) == body
    stamps = [kept.sent_ns, *(at for at, _ in kept.pieces), kept.ended_ns]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(("method", "status"), [("HEAD", b"200 OK"), ("POST", b"204 No Content")])
def test_an_answer_that_can_have_no_body_ends_with_its_head(method: str, status: bytes) -> None:
    length = b"content-length: 5\r\n" if method == "HEAD" else b""
    with playing(say(b"HTTP/1.1 %b\r\n%b\r\n" % (status, length))) as server:
        assert asked(server, method=method).content == b""


BROKEN: dict[str, tuple[list[Play], type[httpx.TransportError], str]] = {
    "cut within a chunk": ([say(CHUNKED + b"5\r\nhel"), close], httpx.RemoteProtocolError, "cut the body"),
    "cut between chunks": ([say(CHUNKED + b"5\r\nhello\r\n"), close], httpx.RemoteProtocolError, "cut the body"),
    "cut short of its length": (
        [say(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello"), close],
        httpx.RemoteProtocolError,
        "cut the body",
    ),
    "closed without an answer": ([close], httpx.RemoteProtocolError, "without an answer"),
    "reset without an answer": ([reset], httpx.ReadError, "reset by peer"),
    "not HTTP": ([say(b"hello there, this is not HTTP\r\n\r\n")], httpx.RemoteProtocolError, "not HTTP"),
    "a chunk size that is no number": ([say(CHUNKED + b"zz\r\nhello\r\n")], httpx.RemoteProtocolError, "not HTTP"),
    "a change of protocol": (
        [say(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"), close],
        httpx.RemoteProtocolError,
        "not HTTP",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_raises_what_httpx_raises(name: str) -> None:
    plays, error, words = BROKEN[name]
    with playing(*plays) as server, pytest.raises(error, match=words):
        asked(server)


def test_what_came_before_the_break_is_kept_and_handed_out() -> None:
    given = Arrivals()
    got: list[bytes] = []

    async def work(ready: httpx.AsyncClient) -> None:
        async with ready.stream("POST", server.url, extensions={"arrivals": given}) as response:
            async for data in response.aiter_raw():
                got.append(data)

    with playing(say(CHUNKED + b"5\r\nhello\r\n"), close) as server, pytest.raises(httpx.RemoteProtocolError):
        client(work)
    assert got == [b"hello"] == [data for _, data in given.pieces]
    assert 0 < given.sent_ns < given.ended_ns


def test_silence_is_a_timeout_and_progress_is_not() -> None:
    steps = [step for _ in range(4) for step in (say(b"1\r\nx\r\n"), pause(0.1))]
    with playing(say(CHUNKED), *steps, say(b"0\r\n\r\n")) as server:
        assert asked(server, timeout=0.3).content == b"xxxx"
    with playing(say(CHUNKED + b"1\r\nx\r\n"), pause(1.0)) as server:
        began = time.monotonic()
        with pytest.raises(httpx.ReadTimeout, match=r"0\.2 s"):
            asked(server, timeout=0.2)
        assert time.monotonic() - began < 0.9


def test_a_connection_is_used_again_unless_the_server_says_that_it_ends() -> None:
    async def thrice(ready: httpx.AsyncClient) -> None:
        for _ in range(3):
            assert (await ready.post(server.url, content=b"{}")).content == b"hello"

    with playing(HELLO) as server:
        client(thrice)
        assert (server.connections, len(server.requests)) == (1, 3)
    with playing(
        say(CHUNKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + b"5\r\nhello\r\n0\r\n\r\n")
    ) as server:
        client(thrice)
        assert server.connections == 3


@pytest.mark.parametrize("after", [close, say(b"HTTP/1.1 408 Request Timeout\r\n\r\n")], ids=["closed", "spoke"])
def test_a_kept_connection_that_ended_or_spoke_unasked_is_not_used_again(after: Play) -> None:
    async def twice(ready: httpx.AsyncClient) -> list[int]:
        first = await ready.post(server.url)
        await asyncio.sleep(0.1)
        second = await ready.post(server.url)
        return [first.status_code, second.status_code]

    with playing(HELLO, pause(0.03), after) as server:
        assert client(twice) == [200, 200]
        assert server.connections == 2


def test_a_request_is_never_sent_twice() -> None:
    async def twice(ready: httpx.AsyncClient) -> None:
        await ready.post(server.url)
        await ready.post(server.url)

    lives: list[int] = []

    def once(peer: socket.socket) -> None:
        lives.append(1)
        (HELLO if len(lives) == 1 else reset)(peer)

    with playing(once) as server:
        with pytest.raises(httpx.ReadError):
            client(twice)
        assert len(server.requests) == 2


def test_as_many_connections_as_requests_at_once() -> None:
    async def eight(ready: httpx.AsyncClient) -> None:
        await asyncio.gather(*(ready.post(server.url) for _ in range(8)))

    with playing(pause(0.1), HELLO) as server:
        client(eight)
        assert server.connections == 8


def test_a_request_larger_than_the_socket_takes_at_once_arrives_whole() -> None:
    body = bytes(range(256)) * 40_000
    with playing(HELLO) as server:
        assert client(lambda ready: ready.post(server.url, content=body)).content == b"hello"
        assert server.requests[0].endswith(b"\r\n\r\n" + body)


def test_cancelling_closes_the_connection() -> None:
    async def work(ready: httpx.AsyncClient) -> None:
        for wait in (0.05, 0.05):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(wait):
                    await ready.post(server.url)

    with playing(pause(0.3), say(CHUNKED), pause(0.3)) as server:
        client(work)
        assert server.connections == 2


def test_leaving_a_body_unread_closes_the_connection() -> None:
    async def work(ready: httpx.AsyncClient) -> None:
        async with ready.stream("POST", server.url) as response:
            assert response.status_code == 200
        async with ready.stream("POST", server.url) as response:
            assert response.status_code == 200

    with playing(say(CHUNKED), pause(0.2)) as server:
        client(work)
        assert server.connections == 2


def test_closing_the_client_breaks_what_is_under_way() -> None:
    async def work() -> None:
        async with httpx.AsyncClient(transport=RecordingTransport()) as ready:
            task = asyncio.create_task(ready.post(server.url))
            await asyncio.sleep(0.05)
        with pytest.raises(httpx.ReadError, match="by the client"):
            await task

    with playing(pause(1.0)) as server:
        execute(work())


def test_nobody_there_an_unknown_name_and_another_scheme_are_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(httpx.ConnectError, match="refused") as refused:
        client(lambda ready: ready.get(f"http://127.0.0.1:{port}"))
    assert isinstance(refused.value.__cause__, ConnectionRefusedError)
    with pytest.raises(httpx.ConnectError, match=r"nowhere\.invalid") as unknown:
        client(lambda ready: ready.get("http://nowhere.invalid"))
    assert isinstance(unknown.value.__cause__, socket.gaierror)
    with pytest.raises(httpx.UnsupportedProtocol):
        client(lambda ready: ready.get("https://127.0.0.1"))


def test_stamps_are_the_kernels_and_do_not_wait_for_a_busy_loop() -> None:
    async def work(ready: httpx.AsyncClient) -> Arrivals:
        task = asyncio.create_task(ready.post(server.url))
        await asyncio.sleep(0.05)
        time.sleep(0.3)  # the loop is busy with something else while the answer arrives
        return arrivals(await task)

    with playing(pause(0.1), HELLO) as server:
        kept = client(work)
        late_s = (kept.pieces[0][0] - server.said_ns[1]) / 1e9
    assert 0 <= late_s < 0.1
    assert kept.unstamped == 0


def test_pieces_received_together_share_a_stamp_and_are_counted() -> None:
    with playing(say(CHUNKED + b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n"), pause(0.05), say(b"1\r\nd\r\n0\r\n\r\n")) as server:
        kept = arrivals(asked(server))
    assert [data for _, data in kept.pieces] == [b"a", b"b", b"c", b"d"]
    assert coalesced(at for at, _ in kept.pieces) == 2


def test_without_kernel_stamps_those_of_the_loop_are_taken_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.load.sockets.KERNEL_STAMPS", None)
    with playing(say(CHUNKED), pause(0.05), say(b"1\r\na\r\n0\r\n\r\n")) as server:
        kept = arrivals(asked(server))
    assert kept.unstamped == 2
    assert kept.sent_ns < kept.pieces[0][0] <= kept.ended_ns


def test_the_stock_transport_leaves_the_same_record_and_says_whose_stamps_it_holds() -> None:
    async def work() -> httpx.Response:
        async with httpx.AsyncClient(transport=StampedTransport()) as ready:
            return await ready.post(server.url)

    with playing(say(CHUNKED + b"1\r\na\r\n"), pause(0.05), say(b"1\r\nb\r\n0\r\n\r\n")) as server:
        kept = arrivals(execute(work()))
    assert [data for _, data in kept.pieces] == [b"a", b"b"]
    assert kept.unstamped == 2
    assert kept.sent_ns < kept.pieces[0][0] < kept.pieces[1][0] <= kept.ended_ns


def test_the_offset_leads_from_the_wall_clock_to_the_monotonic_one() -> None:
    found = time.time_ns() + WallClock.now().offset_ns - time.monotonic_ns()
    assert abs(found) < 5_000_000
