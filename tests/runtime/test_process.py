"""A server process is awaited, logged and stopped with everything it started, however it ends."""

from __future__ import annotations

import os
import socket
import sys
import textwrap
import time
from pathlib import Path

import httpx
import pytest

from kit.errors import ServerError
from kit.runtime import Order, ProcessServer

SERVER = """
import os, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(os.environ["SPECKIT_TRACE_DIR"].encode() + b" " + os.environ.get("COLOUR", "").encode())
    def log_message(self, *arguments): pass
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


def server(script: str, folder: Path, *, timeout_s: float = 20) -> ProcessServer:
    order = Order(
        launch=0,
        arm="baseline",
        sglang="0.5.15.post1",
        flags=("--flag", "1"),
        env={"COLOUR": "blue"},
        folder=folder,
        startup_timeout_s=timeout_s,
    )
    return ProcessServer((sys.executable, "-c", textwrap.dedent(script)), order)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_is_awaited_reached_and_stopped_with_its_children(tmp_path: Path) -> None:
    running = server(SERVER, tmp_path)
    endpoint = running.start()
    try:
        answer = httpx.get(endpoint.base_url).text
        child = int(running.log_text().split()[1])
        assert answer == f"{endpoint.trace} blue"
        assert alive(child)
    finally:
        running.stop()
    assert not alive(child)
    assert endpoint.command[-6:-4] == ("--flag", "1")
    assert endpoint.startup_s > 0


def test_stopping_twice_is_harmless(tmp_path: Path) -> None:
    running = server(SERVER, tmp_path)
    running.start()
    assert running.stop() == running.stop() == -15


def test_a_server_that_was_never_started_has_no_exit_code(tmp_path: Path) -> None:
    assert server(SERVER, tmp_path).stop() is None


def test_one_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.runtime.process._GRACE_S", 0.3)
    running = server("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVER, tmp_path)
    running.start()
    started = time.monotonic()
    assert running.stop() == -9
    assert time.monotonic() - started < 5


def test_one_that_dies_is_an_error_with_its_exit_code_and_its_log_is_kept(tmp_path: Path) -> None:
    running = server("print('no such model', flush=True); raise SystemExit(3)", tmp_path)
    with pytest.raises(ServerError, match="ended with 3 before it was ready"):
        running.start()
    assert running.stop() == 3
    assert running.log_text() == "no such model\n"


def test_one_that_never_gets_ready_is_given_up_and_stopped(tmp_path: Path) -> None:
    running = server("import os, time; print(os.getpid(), flush=True); time.sleep(600)", tmp_path, timeout_s=1.5)
    with pytest.raises(ServerError, match=r"not ready after 1\.5 s"):
        running.start()
    running.stop()
    assert not alive(int(running.log_text()))


def test_the_order_does_not_leak_into_the_environment_of_the_kit(tmp_path: Path) -> None:
    running = server(SERVER, tmp_path)
    running.start()
    running.stop()
    assert "COLOUR" not in os.environ


def test_the_port_leaves_room_for_the_one_that_sglang_derives_from_it(tmp_path: Path) -> None:
    ports = {int(server(SERVER, tmp_path)._command[-1]) for _ in range(20)}
    assert max(ports) + 10_000 < 32_768
    assert len(ports) > 1


def test_a_taken_port_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        monkeypatch.setattr("kit.runtime.process._PORTS", range(taken, taken + 1))
        with pytest.raises(ServerError, match="is free"):
            server(SERVER, tmp_path)
