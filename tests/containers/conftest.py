"""One engine and both images for all tests; without an engine every test is skipped by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import BASE, ROOT, Engine, NoEngineError, engine

STANDIN = ROOT / ".cache" / "standin-base"


@pytest.fixture(scope="session")
def bare() -> Iterator[Engine]:
    """An engine that answers."""
    try:
        with engine() as found:
            yield found
    except NoEngineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def host(bare: Engine) -> Engine:
    """The engine with both variants built on the stand-in of SGLang's image."""
    subprocess.run((sys.executable, ROOT / ".ci" / "standin_base.py", STANDIN), check=True)
    bare.docker("load", "--input", STANDIN / "base.tar")
    for variant in ("triton", "flashinfer"):
        command = (sys.executable, ROOT / "docker" / "build.py", variant, "--base-image", BASE)
        done = subprocess.run(command, env=bare.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return bare


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder for /results that any uid may write."""
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder for specs that any uid may read, as a checkout is."""
    folder = tmp_path / "specs"
    folder.mkdir()
    folder.chmod(0o755)
    return folder
