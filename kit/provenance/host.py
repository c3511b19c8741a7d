"""Host, GPUs, versions, and where the spec stands in version control."""

from __future__ import annotations

import csv
import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["SpecCommit", "host_facts", "spec_commit"]

_PACKAGES = ("duckdb", "httpx", "numpy", "scipy", "sglang", "torch", "triton", "flashinfer-python", "sglang-kernel")
_GPU_FIELDS = ("name", "driver_version", "memory.total", "pcie.link.gen.current", "ecc.mode.current", "power.limit")
_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class SpecCommit:
    """The commit that last changed the spec, when the working copy equals it."""

    commit: str
    committed_utc: str


def host_facts() -> dict[str, Any]:
    """Machine, operating system, GPUs and package versions, as JSON values. What cannot be read is null."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": _gpus(),
        "visible_gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "packages": {name: _version(name) for name in _PACKAGES},
        "kit_commit": _git("rev-parse", "HEAD", folder=Path(__file__).parent),
    }


def spec_commit(path: Path) -> SpecCommit | None:
    """Where `path` is registered: None unless it is in git and its working copy is unchanged."""
    folder, name = path.resolve().parent, path.name
    if _git("status", "--porcelain", "--", name, folder=folder) != "":
        return None
    line = _git("log", "-1", "--format=%H %cI", "--", name, folder=folder)
    return SpecCommit(*line.split(" ", 1)) if line else None


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)


def _gpus() -> list[dict[str, str]] | None:
    """One entry a GPU of the host as nvidia-smi reports it, visible or not; None where there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return None
    out = _output("nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader")
    rows = csv.reader((out or "").splitlines(), skipinitialspace=True)
    return [dict(zip(_GPU_FIELDS, row, strict=False)) for row in rows]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str, folder: Path) -> str | None:
    return _output("git", "-C", str(folder), *arguments)


def _output(*command: str) -> str | None:
    """Standard output of `command` without the final newline; None when it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip("\n")
