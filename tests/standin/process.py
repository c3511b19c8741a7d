"""A stand-in as its own process, as a run starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

__all__ = ["CHAIN", "Process", "command", "free_port", "launched", "started"]

CHAIN = (
    *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "draft"),
    *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
)


@dataclass(frozen=True, slots=True)
class Process:
    """A ready server."""

    base_url: str
    log: Path
    trace: Path


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def command(*flags: str, port: int) -> list[str]:
    """The command line of a stand-in."""
    return [
        *(sys.executable, "-m", "kit.standin", "--world", "crossover", "--launch-seed", "1"),
        *("--model-path", "m", "--disable-radix-cache", "--context-length", "512", "--port", str(port), *flags),
    ]


@contextmanager
def launched(folder: Path, *flags: str) -> Iterator[Process]:
    """A server that is ready; it must end with status 0 on SIGTERM."""
    port = free_port()
    server = Process(f"http://127.0.0.1:{port}", folder / "server.log", folder / "trace" / "trace.jsonl")
    environment = os.environ | {"SPECKIT_TRACE_DIR": str(folder / "trace")}
    with server.log.open("wb") as log:
        process = subprocess.Popen(command(*flags, port=port), stdout=log, stderr=log, env=environment)
    try:
        started(server, process)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)
    assert code == 0, server.log.read_text()


def started(server: Process, process: subprocess.Popen[bytes]) -> None:
    """Wait until it is ready."""
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{server.base_url}/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"the stand-in is not ready: {server.log.read_text()}")
