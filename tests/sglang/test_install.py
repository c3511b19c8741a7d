"""Making the environment of the CPU engine: the right torch, by hash, announced, once, and again after a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "docker" / "sglang-cpu" / "install.py"

# Stands for the interpreter of the environment: it knows some builds of torch, writes down what pip is asked to
# install, and can fail at it.
INTERPRETER = """#!{python}
import pathlib, sys
asked, log = sys.argv[1:], pathlib.Path(__file__).with_name("asked")
if "index" in asked:
    print("torch (2.13.0)\\nAvailable versions: {builds}")
else:
    with log.open("a") as file:
        print(*asked, file=file)
    sys.exit({status})
"""


def environment(folder: Path, *, builds: str, status: int = 0) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(INTERPRETER.format(python=sys.executable, builds=builds, status=status))
    python.chmod(0o755)
    return folder


def install(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, INSTALL, "--venv", folder], capture_output=True, text=True)


def asked(folder: Path) -> list[str]:
    return (folder / "bin" / "asked").read_text().splitlines()


@pytest.mark.parametrize(
    ("builds", "lock", "size"),
    [("2.13.0+cpu, 2.13.0", "torch-cpu.lock", "0.5 GB"), ("2.14.1, 2.13.0", "torch-cuda.lock", "2.9 GB")],
)
def test_the_cpu_build_is_preferred_and_the_size_is_said_before_anything_is_downloaded(
    tmp_path: Path, builds: str, lock: str, size: str
) -> None:
    found = install(environment(tmp_path, builds=builds))
    assert found.returncode == 0, found.stderr
    assert size in found.stdout
    packages, plugins, proof = asked(tmp_path)
    assert packages.endswith(lock)
    assert "--require-hashes" in packages and "--no-deps" in packages and "requirements-cpu-engine.lock" in packages
    assert plugins.endswith("/docker/trace")
    assert "import sgl_kernel, torchvision, speckit_trace" in proof


def test_a_complete_environment_costs_nothing_again(tmp_path: Path) -> None:
    install(environment(tmp_path, builds="2.13.0+cpu"))
    before = asked(tmp_path)
    again = install(tmp_path)
    assert (again.returncode, again.stdout) == (0, "")
    assert asked(tmp_path) == before


def test_after_a_failure_it_says_what_failed_and_goes_on_at_the_next_call(tmp_path: Path) -> None:
    failed = install(environment(tmp_path, builds="2.13.0+cpu", status=1))
    assert failed.returncode == 1
    assert "pip" in failed.stderr and "start again to go on" in failed.stderr
    assert not (tmp_path / "speckit-complete").exists()
    assert install(environment(tmp_path, builds="2.13.0+cpu")).returncode == 0
    assert (tmp_path / "speckit-complete").exists()


@pytest.mark.contract
def test_the_locks_of_both_builds_are_what_the_index_has(tmp_path: Path) -> None:
    locks = ("requirements-cpu-engine.lock", "docker/sglang-cpu/torch-cuda.lock")
    here = tmp_path / "docker" / "sglang-cpu"
    here.mkdir(parents=True)
    for name in ("uv.toml", "lock.sh"):
        shutil.copy(INSTALL.with_name(name), here)
    for name in ("requirements-cpu-engine.in", *locks):
        shutil.copy(ROOT / name, tmp_path / name)
    uv = os.environ | {"UV": str(Path(sys.executable).with_name("uv"))}
    subprocess.run(["sh", "docker/sglang-cpu/lock.sh"], cwd=tmp_path, env=uv, check=True)
    for name in locks:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()
