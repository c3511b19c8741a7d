"""A stand-in served by a thread of the test itself, which costs no process start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import uvicorn

from kit.standin.launch import prepare
from kit.standin.precise import precise_loop
from kit.standin.server import application
from tests.standin.process import free_port
from tests.standin.worlds import FAST

__all__ = ["FLAGS", "ONE_EACH", "served"]

# A connection for each request: uvicorn closes it behind an exception, without a word beforehand.
ONE_EACH = httpx.Limits(max_keepalive_connections=0)
FLAGS = ("--world", FAST, "--model-path", "m", "--disable-radix-cache", "--context-length", "512")


@contextmanager
def served(*flags: str, warm: bool = True) -> Iterator[httpx.Client]:
    """A client of a warm server, or of one that has only begun to warm up."""
    app = application(prepare((*FLAGS, *flags)))
    config = uvicorn.Config(app, port=free_port(), log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=_run, args=(server,))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{config.port}", timeout=10, limits=ONE_EACH) as client:
            _await(client, lambda status: status == 200 or not warm)
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=20)


def _run(server: uvicorn.Server) -> None:
    loop = precise_loop()
    loop.run_until_complete(server.serve())
    loop.close()


def _await(client: httpx.Client, there: Callable[[int], bool]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            if there(client.get("/health").status_code):
                return
        except httpx.TransportError:
            pass
        time.sleep(0.01)
    raise AssertionError("the stand-in did not come up")
