"""The iteration trace: one JSON line a decode iteration, flushed before its tokens are sent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from kit.standin.faults import Faults
from kit.standin.iteration import Iteration, Kind, Row
from kit.units import Seconds, Tokens

__all__ = ["TraceFile"]

_NEVER_REVIEWED: dict[str, Any] = {
    "sha": None,
    "targets": {},
    "witnesses": {},
    "reviewed_as": None,
    "override": False,
    "packages": {},
}


class TraceFile:
    """Appends to `trace.jsonl` in a folder, unless the word in the folder's file `control` is `off`.

    Fields: `i` number, `l` and `t` monotonic seconds when the batch was launched and its result was ready, `nd` draft
    tokens and `k` depth in force (None without speculation), `bs` rows, `r` per row [rid, output tokens before, 1 for a
    ghost or 2 for a retracted request], `a` accepted drafts per row, `g` CUDA graph used, `n` requests running and
    waiting at launch, `p` prompt tokens computed by prefills since the decode before, `s` changes of depth that the
    result led to, each [from, to, slot, average].
    """

    def __init__(self, folder: Path, *, largest_graph: int, faults: Faults | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file: BinaryIO = (folder / "trace.jsonl").open("ab")
        self._largest_graph = largest_graph
        self._faults = faults or Faults()
        self._prefilled: Tokens = 0
        self._word = "on"
        self._on = True
        self._written = 0
        self._dropped = 0
        self.obey()

    def obey(self) -> None:
        """Follow the control file: `on`, `off`, or absent, which means on; anything else is shown and changes nothing.

        To be called at idle only, so that no request is half recorded.
        """
        control = self._folder / "control"
        self._word = control.read_text(encoding="ascii", errors="replace").strip() if control.exists() else "on"
        self._on = {"on": True, "off": False}.get(self._word, self._on)

    def write(self, iteration: Iteration, *, launch_s: Seconds, ready_s: Seconds) -> None:
        """Record a decode iteration; a prefill only leaves its tokens to the decode that follows."""
        if not self._on or self._faults.trace_silent:
            return
        if iteration.kind is not Kind.DECODE:
            self._prefilled += sum(_fresh_tokens(row) for row in iteration.rows)
        elif self._written == self._faults.trace_stops:
            self._dropped += 1
        else:
            self._append(self._record(iteration, launch_s=launch_s, ready_s=ready_s))

    def _record(self, iteration: Iteration, *, launch_s: Seconds, ready_s: Seconds) -> dict[str, Any]:
        rows = iteration.rows
        prefilled, self._prefilled = self._prefilled, 0
        return {
            "i": self._written,
            "l": launch_s,
            "t": ready_s,
            "nd": iteration.draft_tokens,
            "k": iteration.depth,
            "bs": len(rows),
            "r": [(row.request.rid, row.before, _discarded(row)) for row in rows],
            "a": None if iteration.draft_tokens is None else [row.accepted for row in rows],
            "g": len(rows) <= self._largest_graph,
            "n": (iteration.running, iteration.waiting),
            "p": prefilled,
            "s": [(one.before, one.after, one.slot, one.ema) for one in iteration.switches],
        }

    def _append(self, record: dict[str, Any]) -> None:
        self._written += 1
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._file.write(line[1:] if self._written == self._faults.trace_garbled else line)
        self._file.flush()

    def status(self) -> dict[str, Any]:
        """What `/server_info` shows under `speckit_trace`."""
        return {
            "version": "stand-in",
            **_NEVER_REVIEWED,
            "pid": os.getpid(),
            "directory": str(self._folder),
            "control": self._word,
            "enabled": self._on and not self._dropped and not self._file.closed,
            "stream": None,
            "records": self._written,
            "dropped": self._dropped,
            "stopped": "asked to stop" if self._dropped else None,
        }

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _fresh_tokens(row: Row) -> Tokens:
    """What a prefill computes of a request: its prompt, and what it had produced before a retraction."""
    return row.request.prompt_tokens + row.before - row.request.cached_tokens


def _discarded(row: Row) -> int:
    if not row.ghost:
        return 0
    return 2 if row.request.finish is None else 1
