"""The event loop for streams: it calls readers itself, and neither timers nor other files wait for them."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from kit.load import run
from kit.load.loop import StreamLoop, unwatch, watch


def test_work_runs_in_a_stream_loop_and_its_result_comes_back() -> None:
    async def work() -> bool:
        await asyncio.sleep(0)
        return isinstance(asyncio.get_running_loop(), StreamLoop)

    assert run(work())


@pytest.mark.parametrize("runner", [run, asyncio.run])
def test_a_reader_is_called_until_it_is_forgotten(runner: object) -> None:
    got: list[bytes] = []

    async def work() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def reader() -> bool:
            got.append(ours.recv(100))
            if got[-1] == b"end":
                ended.set_result(None)
                return True
            return False

        watch(loop, ours.fileno(), reader)
        for text in (b"a", b"b", b"end"):
            theirs.send(text)
            await asyncio.sleep(0.01)
        await ended
        unwatch(loop, ours.fileno())
        theirs.send(b"unheard")
        await asyncio.sleep(0.01)
        ours.close()
        theirs.close()

    runner(work())  # type: ignore[operator]
    assert got == [b"a", b"b", b"end"]


def test_neither_a_timer_nor_a_watched_file_waits_for_a_stream_that_never_falls_silent() -> None:
    async def work() -> tuple[int, str]:
        ours, theirs = socket.socketpair()
        theirs.send(b"never read")
        calls: list[float] = []

        def reader() -> bool:
            calls.append(time.monotonic())
            return False  # it leaves the bytes where they are, so the socket stays readable

        loop = asyncio.get_running_loop()
        watch(loop, ours.fileno(), reader)
        process = await asyncio.create_subprocess_exec("echo", "heard", stdout=asyncio.subprocess.PIPE)
        text, _ = await asyncio.wait_for(process.communicate(), 10)
        await asyncio.sleep(0.02)
        unwatch(loop, ours.fileno())
        ours.close()
        theirs.close()
        return len(calls), text.decode().strip()

    calls, text = run(work())
    assert calls > 1
    assert text == "heard"


def test_a_sleeper_is_never_woken_before_it_is_due() -> None:
    async def work() -> list[float]:
        early = []
        for wait_s in (0.0004, 0.0011, 0.003) * 5:
            due = time.monotonic() + wait_s
            await asyncio.sleep(wait_s)
            early.append(time.monotonic() - due)
        return early

    assert min(run(work())) > -0.0001
