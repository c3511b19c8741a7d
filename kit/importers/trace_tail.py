"""Following a trace while a server writes it: each call gives what has come since the last one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kit.importers.jsonl import decoded
from kit.importers.jsonl_trace import trace_of
from kit.importers.trace import TraceReader
from kit.records import Trace

__all__ = ["TRACE_FILE", "TraceTail"]

TRACE_FILE = "trace.jsonl"


class TraceTail:
    """The trace in `folder`, read piece by piece: binary segments, or the stand-in's JSON lines.

    A record that is still being written waits for the next call.
    """

    def __init__(self, folder: Path, launch: int) -> None:
        self._segments = TraceReader(folder)
        self._path = folder / TRACE_FILE
        self._launch = launch
        self._offset = 0
        self._lines = 0
        self._last: int | None = None

    def read_new(self) -> Trace | None:
        """What was written since the last call; None where nobody writes a trace.

        A gap between two calls counts as lost, like one within. Raises ImportFileError for a broken line.
        """
        if not self._path.exists():
            recording = self._segments.read_new()
            return None if recording is None else recording.trace(launch=self._launch)
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        texts = whole.decode("utf-8").splitlines()
        trace = trace_of(decoded(texts, self._path, first=self._lines + 1), launch=self._launch)
        self._offset += len(whole)
        self._lines += len(texts)
        return self._continued(trace)

    def _continued(self, trace: Trace) -> Trace:
        if not len(trace.iterations):
            return trace
        first, last = int(trace.iterations.number[0]), int(trace.iterations.number[-1])
        gap = 0 if self._last is None else max(first - self._last - 1, 0)
        self._last = last
        return replace(trace, lost=trace.lost + gap)
