"""The pins of the images are held against what a registry says; nothing is made up and nothing is overwritten."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

DOCKER = Path(__file__).parents[1] / "docker"
PINNED = tomllib.loads((DOCKER / "images.lock.toml").read_text())["base"]["digest"]
OTHER = f"sha256:{'1' * 64}"


class Registry(BaseHTTPRequestHandler):
    """Speaks as a registry does: a challenge, a token, a digest in a header."""

    digest = PINNED

    def do_HEAD(self) -> None:
        if self.headers["Authorization"] != "Bearer anonymous":
            self.send_response(401)
            realm = f"http://127.0.0.1:{self.server.server_port}/token"  # type: ignore[attr-defined]
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="registry",scope="pull"')
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", self.digest if "cu130" in self.path else OTHER)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"token": "anonymous"}).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[ThreadingHTTPServer]:
    handler = type("Own", (Registry,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def verify(folder: Path, registry: ThreadingHTTPServer, *words: str) -> subprocess.CompletedProcess[str]:
    """`make verify-pins` on a copy of the lock."""
    for name in ("pins.py", "images.lock.toml"):
        shutil.copy(DOCKER / name, folder / name)
    address = f"http://127.0.0.1:{registry.server_port}"
    command = (sys.executable, str(folder / "pins.py"), "--registry", address, *words)
    return subprocess.run(command, capture_output=True, text=True)


def test_a_digest_that_the_registry_confirms_is_marked_and_an_empty_one_filled_in(
    tmp_path: Path, registry: ThreadingHTTPServer
) -> None:
    done = verify(tmp_path, registry, "--write")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok", "found", "found"]
    lock = tomllib.loads((tmp_path / "images.lock.toml").read_text())
    assert (lock["base"]["digest"], lock["base"]["verified"]) == (PINNED, True)
    assert (lock["alternatives"]["cu129"]["digest"], lock["alternatives"]["cu129"]["verified"]) == (OTHER, True)
    assert lock["variants"] == tomllib.loads((DOCKER / "images.lock.toml").read_text())["variants"]


def test_a_tag_that_was_moved_is_said_and_the_pin_stays(tmp_path: Path, registry: ThreadingHTTPServer) -> None:
    registry.RequestHandlerClass.digest = OTHER  # type: ignore[attr-defined]
    done = verify(tmp_path, registry, "--write")
    assert (done.returncode, done.stdout.split()[0]) == (1, "DIFFERS")
    lock = tomllib.loads((tmp_path / "images.lock.toml").read_text())
    assert (lock["base"]["digest"], lock["base"]["verified"]) == (PINNED, False)


def test_asking_changes_nothing(tmp_path: Path, registry: ThreadingHTTPServer) -> None:
    verify(tmp_path, registry)
    assert (tmp_path / "images.lock.toml").read_text() == (DOCKER / "images.lock.toml").read_text()


def test_without_a_network_the_reason_and_the_next_step_are_one_line(tmp_path: Path) -> None:
    for name in ("pins.py", "images.lock.toml"):
        shutil.copy(DOCKER / name, tmp_path / name)
    command = (sys.executable, str(tmp_path / "pins.py"), "--registry", "http://127.0.0.1:9")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "run this on a machine that reaches the registry" in done.stderr


@pytest.mark.parametrize("pin", ["base", "alternatives"])
def test_no_digest_is_called_verified_that_nobody_has_resolved(pin: str) -> None:
    lock = tomllib.loads((DOCKER / "images.lock.toml").read_text())
    for base in [lock["base"]] if pin == "base" else lock["alternatives"].values():
        assert base["digest"] or not base["verified"]
