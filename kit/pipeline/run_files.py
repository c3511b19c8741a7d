"""Finding run files: newest first, by the time written in their headers."""

from __future__ import annotations

import os
from pathlib import Path

from kit.errors import RunFileError
from kit.records import RunHeader
from kit.store import read_header

__all__ = ["newest_run", "results_folder", "run_files"]


def results_folder() -> Path:
    """Where run files lie unless a user says otherwise: SPECKIT_RESULTS (images set it), else `results` here."""
    return Path(os.environ.get("SPECKIT_RESULTS", "results"))


def run_files(folder: Path | None = None) -> list[tuple[Path, RunHeader]]:
    """Every readable run file in `folder` with its header, newest first; unreadable ones are left out."""
    found = []
    for path in (folder or results_folder()).glob("*.duckdb"):
        try:
            found.append((path, read_header(path)))
        except RunFileError:
            continue
    return sorted(found, key=lambda item: item[1].created_utc, reverse=True)


def newest_run(folder: Path | None = None) -> Path:
    """The newest run file in `folder`. Raises RunFileError when there is none."""
    files = run_files(folder)
    if not files:
        raise RunFileError(
            f"{folder or results_folder()}: holds no run file; measure one with `speckit run specs/quickstart.yaml`"
        )
    return files[0][0]
