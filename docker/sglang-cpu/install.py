"""Make the environment of the CPU engine: SGLang 0.5.21, its locked packages, these kernels and the trace plugin.

Standard library and pip only. Everything comes from the package index that pip is configured for, checked by hash.
Torch is taken as a CPU build where pip finds one, because the ordinary index serves a CUDA build under the same
version, several times as large. A second call costs nothing; one after an interruption goes on with what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOCK = ROOT / "requirements-cpu-engine.lock"
TORCH_CPU, TORCH_CUDA = HERE / "torch-cpu.lock", HERE / "torch-cuda.lock"
PLUGINS = (HERE, HERE.parent / "trace")
CPU_TORCH = "2.13.0+cpu"

_CPU_PLAN = "torch as a CPU build: about 0.5 GB to download and 2.1 GB on disk in {venv}"
_CUDA_PLAN = (
    "torch as a CUDA build, because pip finds no CPU build of 2.13.0 for this Python: about 2.9 GB to download and "
    "5.3 GB on disk in {venv}. To avoid that, interrupt, point PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS at PyTorch's CPU "
    "builds, use Python 3.11, and start again"
)


def main() -> int:
    """Exit code 0 when the environment is complete, 1 when pip failed, 4 when this machine cannot have it."""
    parser = argparse.ArgumentParser(description="Make the environment of the CPU engine.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".cache" / "cpu-engine", help="where (default %(default)s)")
    folder = parser.parse_args().venv
    if refusal := _refusal():
        print(f"cpu engine: {refusal}", file=sys.stderr)
        return 4
    stamp, wanted = folder / "speckit-complete", _digest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        stamp.unlink(missing_ok=True)
        try:
            _install(folder)
        except subprocess.CalledProcessError as error:
            print(f"cpu engine: {shlex.join(error.cmd)} failed, see above; start again to go on", file=sys.stderr)
            return 1
        stamp.write_text(wanted)
    return 0


def _refusal() -> str | None:
    """Why SGLang's wheel does not run here; None when it does."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        here = f"{sys.platform} on {platform.machine()}"
        return f"runs on Linux on x86-64, not on {here}: measure the stand-in there with `make demo`"
    name, version = platform.libc_ver()
    if name == "glibc" and tuple(map(int, version.split("."))) < (2, 34):
        return f"needs glibc 2.34, this machine has {version}: use Debian 12, Ubuntu 22.04 or newer"
    return None


def _digest() -> str:
    """Changes with the locks, the sources of the plugins and the version of Python."""
    digest = hashlib.sha256(platform.python_version().encode())
    for path in _inputs():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _inputs() -> Iterator[Path]:
    yield from (LOCK, TORCH_CPU, TORCH_CUDA)
    for plugin in PLUGINS:
        yield plugin / "pyproject.toml"
        yield from sorted(plugin.glob("s*/*.py"))


def _install(folder: Path) -> None:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    pip = (str(python), "-m", "pip", "--disable-pip-version-check")
    on_cpu = CPU_TORCH in _versions(pip, "torch")
    print(f"cpu engine: {(_CPU_PLAN if on_cpu else _CUDA_PLAN).format(venv=folder)}", flush=True)
    locks = (LOCK, TORCH_CPU if on_cpu else TORCH_CUDA)
    files = [argument for lock in locks for argument in ("--requirement", str(lock))]
    # The lock is complete, and SGLang declares the needs of a GPU server: nothing may be resolved beyond it.
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--require-hashes", *files], check=True)
    built = ("--no-deps", "--no-build-isolation", "--force-reinstall", *map(str, PLUGINS))
    subprocess.run([*pip, "install", "--quiet", *built], check=True)
    subprocess.run([str(python), "-c", "import sgl_kernel, torchvision, speckit_trace"], check=True)


def _versions(pip: tuple[str, ...], package: str) -> list[str]:
    """Every version of `package` that pip finds for this Python, local builds included."""
    found = subprocess.run([*pip, "index", "versions", package], capture_output=True, text=True, check=True)
    line = next(line for line in found.stdout.splitlines() if line.startswith("Available versions:"))
    return line.removeprefix("Available versions:").replace(" ", "").split(",")


if __name__ == "__main__":
    sys.exit(main())
