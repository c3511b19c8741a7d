"""A server as a subprocess in a process group of its own: started, awaited, logged, stopped, nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kit.contract import load
from kit.diagnosis import diagnose
from kit.errors import ServerError
from kit.records import Origin
from kit.runtime.endpoint import Endpoint, Order, Server, is_ready
from kit.runtime.inside import baked_facts
from kit.runtime.owner import listens
from kit.units import Seconds

__all__ = ["TRACE_VARIABLE", "LocalRuntime", "ProcessServer", "StandinRuntime"]

_POLL_S = 0.05
_GRACE_S = 10.0
_PORTS = range(20_000, 22_000)
_GRPC_OFFSET = 10_000
TRACE_VARIABLE = "SPECKIT_TRACE_DIR"


class ProcessServer:
    """A `Server` that is one command. Everything it starts shares its process group and ends with it."""

    def __init__(self, command: tuple[str, ...], order: Order) -> None:
        self._order = order
        self._port = _free_port()
        self._command = (*command, *order.flags, "--host", "127.0.0.1", "--port", str(self._port))
        self._log = order.folder / "server.log"
        self._trace = order.folder / "trace"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Endpoint:
        self._trace.mkdir(parents=True)
        started = time.monotonic()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **self._order.env, TRACE_VARIABLE: str(self._trace)},
            )
        base_url = f"http://127.0.0.1:{self._port}"
        self._await(self._process, base_url, until=started + self._order.startup_timeout_s)
        return Endpoint(base_url, self._command, time.monotonic() - started, self._log, self._trace)

    def _await(self, process: subprocess.Popen[bytes], base_url: str, *, until: Seconds) -> None:
        while not is_ready(base_url):
            code = process.poll()
            if code is not None:
                raise ServerError(f"the server ended with {code} before it was ready: {self._cause(code)}")
            if time.monotonic() > until:
                limit = self._order.startup_timeout_s
                raise ServerError(
                    f"the server was not ready after {limit:g} s: {self._cause(None)}; raise engine.startup_timeout_s"
                )
            time.sleep(_POLL_S)
        if listens(self._port, group=process.pid) is False:
            raise ServerError(
                f"another process listens on port {self._port}, so the answer there is not from this launch: "
                f"{self._cause(process.poll())}"
            )

    def _cause(self, code: int | None) -> str:
        found = diagnose(self.log_text(), exit_code=code, names=load(self._order.sglang))
        return f"{found.title}; {found.advice}"

    def stop(self) -> int | None:
        if self._process is None:
            return None
        early = self._process.poll()
        for stop_signal in (signal.SIGTERM, signal.SIGKILL):
            if not _signal_group(self._process.pid, stop_signal):
                break
            if _gone(self._process, within=_GRACE_S):
                break
        self._process.wait()
        return early if early is not None else self._process.returncode

    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""


class StandinRuntime:
    """The embedded simulator, one process a launch; `faults` are what it shall get wrong, by arm."""

    origin = Origin.SIMULATED

    def __init__(self, world: str, *, faults: Mapping[str, Sequence[str]] = MappingProxyType({})) -> None:
        self._world = world
        self._faults = faults

    def server(self, order: Order) -> Server:
        world = ("--world", self._world, "--version", order.sglang, "--launch-seed", str(order.launch))
        faults = (word for fault in self._faults.get(order.arm, ()) for word in ("--fault", fault))
        return ProcessServer((sys.executable, "-m", "kit.standin", *world, *faults), order)

    def facts(self) -> dict[str, Any]:
        return baked_facts()


class LocalRuntime:
    """SGLang itself, run by the interpreter of the environment that holds it."""

    origin = Origin.MEASURED

    def __init__(self, python: Path) -> None:
        self._python = python

    def server(self, order: Order) -> Server:
        return ProcessServer((str(self._python), "-m", "sglang.launch_server"), order)

    def facts(self) -> dict[str, Any]:
        return baked_facts()


def _free_port() -> int:
    """A port that nobody listens on, with the one that SGLang derives from it for gRPC.

    Below the range from which Linux takes the ports of outgoing connections, and low enough for the derived port:
    what the system itself would give is often above 55,535, and then SGLang does not start.
    """
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if _is_free(port) and _is_free(port + _GRPC_OFFSET):
            return port
    raise ServerError(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free; stop what listens there")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _signal_group(group: int, stop_signal: int) -> bool:
    """Whether the group still had a process to signal."""
    try:
        os.killpg(group, stop_signal)
    except ProcessLookupError:
        return False
    return True


def _gone(process: subprocess.Popen[bytes], *, within: Seconds) -> bool:
    """Whether the whole group has ended, children that outlive their parent included."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        process.poll()
        if not any(_runs_in(process.pid, entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            return True
        time.sleep(0.02)
    return False


def _runs_in(group: int, entry: Path) -> bool:
    """Whether that process belongs to `group` and runs. Orphans stay zombies where process 1 does not reap them."""
    try:
        state, _, pgrp = (entry / "stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[:3]
    except OSError:
        return False
    return int(pgrp) == group and state != "Z"
