"""The iteration trace: one JSON line a decode iteration, flushed before its tokens are sent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from kit.standin.iteration import Iteration, Kind
from kit.units import Seconds

__all__ = ["TraceFile"]


class TraceFile:
    """Appends to `trace.jsonl` in a folder.

    Fields: `i` number, `t` monotonic seconds when the result was ready, `nd` draft tokens in force (None without
    speculation), `bs` rows, `r` per row [rid, output tokens before, 1 for a ghost], `a` accepted drafts per row,
    `g` CUDA graph used.
    """

    def __init__(self, folder: Path, *, largest_graph: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file: BinaryIO = (folder / "trace.jsonl").open("ab")
        self._largest_graph = largest_graph
        self._written = 0

    def write(self, iteration: Iteration, *, ready_s: Seconds) -> None:
        """Record a decode iteration; prefills are not traced."""
        if iteration.kind is not Kind.DECODE:
            return
        rows = iteration.rows
        speculates = iteration.draft_tokens is not None
        record = {
            "i": self._written,
            "t": ready_s,
            "nd": iteration.draft_tokens,
            "bs": len(rows),
            "r": [(row.request.rid, row.before, int(row.ghost)) for row in rows],
            "a": [row.accepted for row in rows] if speculates else None,
            "g": len(rows) <= self._largest_graph,
        }
        self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()
        self._written += 1

    def status(self) -> dict[str, Any]:
        """What `/server_info` shows under `speckit_trace`."""
        return {
            "version": "stand-in",
            "pid": os.getpid(),
            "directory": str(self._folder),
            "enabled": not self._file.closed,
            "records": self._written,
            "dropped": 0,
        }

    def close(self) -> None:
        """Close the file."""
        self._file.close()
