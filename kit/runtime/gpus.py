"""Which GPUs this host has, asked of nvidia-smi."""

from __future__ import annotations

import csv
import shutil
import subprocess

__all__ = ["architectures", "gpu_rows"]

_TIMEOUT_S = 20


def gpu_rows(*fields: str, query: str = "gpu") -> list[dict[str, str]] | None:
    """One row a GPU, or what else `query` names, as nvidia-smi prints it; None where it is missing or fails."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = ("nvidia-smi", f"--query-{query}={','.join(fields)}", "--format=csv,noheader")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [dict(zip(fields, row, strict=False)) for row in csv.reader(done.stdout.splitlines(), skipinitialspace=True)]


def architectures() -> str:
    """The GPUs' compute capabilities as one word, for instance sm86; `unknown` where nothing tells them."""
    found = {row["compute_cap"].replace(".", "") for row in gpu_rows("compute_cap") or ()}
    return "-".join(f"sm{capability}" for capability in sorted(found)) or "unknown"
