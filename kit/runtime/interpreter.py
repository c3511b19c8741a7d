"""Which Python runs SGLang without Docker: the CPU engine's for `image: cpu`, else the one that the user names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kit.errors import PrerequisiteError

__all__ = ["cpu_engine", "local_python"]

_REPOSITORY = Path(__file__).resolve().parents[2]
# Written by docker/sglang-cpu/install.py when nothing is missing.
_COMPLETE = "speckit-complete"


def cpu_engine() -> Path:
    """The interpreter of the CPU engine: of the environment SPECKIT_CPU_ENGINE, else `.cache/cpu-engine` here.

    Raises PrerequisiteError when it is not set up.
    """
    named = os.environ.get("SPECKIT_CPU_ENGINE")
    folder = Path(named) if named else _REPOSITORY / ".cache" / "cpu-engine"
    if not (folder / _COMPLETE).is_file():
        raise PrerequisiteError(f"SGLang for the CPU is not set up in {folder}: run `make cpu-engine`")
    return folder / "bin" / "python"


def local_python() -> Path:
    """The interpreter named by SPECKIT_PYTHON, else this one."""
    return Path(os.environ.get("SPECKIT_PYTHON", sys.executable))
