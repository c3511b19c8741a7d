"""A binary iteration trace: the segments of one server process, in order, with what is missing counted.

`read_trace` gives what analysis needs of a finished trace, `read_recording` everything in it, `TraceReader`
what has come since the last look at a trace that is still being written. Damage never raises: reading goes on
behind it, in the next segment, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kit.errors import ImportFileError
from kit.importers.recording import Recording, Rows, Steps, TraceHeader
from kit.importers.segments import NOBODY, SUFFIX, Records, opening, records
from kit.importers.trace_ledger import Ledger
from kit.records import Ints, Trace

__all__ = ["TraceReader", "read_recording", "read_trace"]

_NAME = re.compile(rf"([0-9a-f]{{32}})-(\d{{6,}}){re.escape(SUFFIX)}")


def read_trace(directory: Path, *, launch: int) -> Trace:
    """The decode iterations of a finished trace.

    Raises:
        ImportFileError: there is no trace, there is more than one, or it is not one that this kit can read.
    """
    return read_recording(directory).trace(launch=launch)


def read_recording(directory: Path) -> Recording:
    """Everything in a finished trace; raises as `read_trace` does."""
    recording = TraceReader(directory).read_new(final=True)
    if recording is None:
        raise ImportFileError(f"{directory} holds no trace; was SPECKIT_TRACE_DIR set for the server?")
    return recording


class TraceReader:
    """Reads a trace piece by piece.

    Args:
        directory: where one server process writes its segments.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ledger = Ledger()
        self._header: TraceHeader | None = None
        self._rids: dict[str, int] = {}
        self._segment = -1  # the one being read: its number, how far, and the names it gave
        self._offset = 0
        self._names: list[int] = []
        self._batch = NOBODY
        self._dropped = 0

    def read_new(self, *, final: bool = False) -> Recording | None:
        """What has come since the last call; None as long as there is no header.

        Args:
            final: nobody writes any more, so an unfinished record is a damage and nothing to wait for.
        """
        pieces = [records(b"", 0)]  # so that there is always something to concatenate
        faults: list[str] = []
        paths = self._segments()
        dropped = self._dropped
        for number, path in paths:
            if number >= self._segment:
                finished = final or number < paths[-1][0]
                pieces += self._read_segment(number, path, faults, finished=finished)
        if self._header is not None:
            return self._assembled(self._header, pieces, faults, dropped=max(self._dropped - dropped, 0))
        if faults:
            raise ImportFileError(f"{self._directory}: no segment can be read: {'; '.join(faults)}")
        return None

    def _segments(self) -> list[tuple[int, Path]]:
        named = [(match, path) for path in self._directory.glob(f"*{SUFFIX}") if (match := _NAME.fullmatch(path.name))]
        streams = sorted({match[1] for match, _ in named})
        if len(streams) > 1:
            raise ImportFileError(
                f"{self._directory} holds traces of {len(streams)} processes ({', '.join(streams)}); "
                "give every launch a folder of its own"
            )
        return sorted((int(match[2]), path) for match, path in named)

    def _read_segment(self, number: int, path: Path, faults: list[str], *, finished: bool) -> list[Records]:
        """The new records of one segment, if any; what is wrong with it goes to `faults` once it is finished."""
        data = _read(path)
        start = opening(data)
        # A file of zeros is one whose writer was killed before it began.
        if start is None and not (finished and any(data)):
            return []
        self._enter(number, path, faults)
        if start is None:
            faults.append(f"{path.name} does not begin as a segment does")
            return []
        piece = records(data, self._offset or start.size, self._batch)
        self._offset, self._batch, self._dropped = piece.stop, piece.batch, start.dropped
        if piece.damage is not None and finished:
            faults.append(f"{path.name} has {piece.damage} at byte {piece.stop}; nothing behind it was read")
        if self._header is None and piece.headers:
            self._header = TraceHeader.read(start, piece.headers[0])
        return [replace(piece, rid=self._renamed(piece, path))]

    def _enter(self, number: int, path: Path, faults: list[str]) -> None:
        if number > self._segment + 1:
            faults.append(f"{number - self._segment - 1} segments before {path.name} are missing")
        if number > self._segment:
            self._segment, self._offset, self._names, self._batch = number, 0, [], NOBODY

    def _renamed(self, piece: Records, path: Path) -> Ints:
        """The rows' requests as indices into the names of all segments."""
        self._names += [self._rids.setdefault(rid, len(self._rids)) for rid in piece.rids]
        if len(piece.rid) and piece.rid.max() >= len(self._names):
            raise ImportFileError(f"{path} has rows of requests it does not name; was it written by speckit?")
        return np.array(self._names, np.int64).take(piece.rid)

    def _assembled(
        self, header: TraceHeader, pieces: Sequence[Records], faults: list[str], *, dropped: int
    ) -> Recording:
        steps = Steps(
            heads=np.concatenate([piece.iterations for piece in pieces]),
            prefills=np.concatenate([piece.prefills for piece in pieces]),
            rows=np.concatenate([piece.rows for piece in pieces]),
        )
        events = tuple(event for piece in pieces for event in piece.events)
        decode_number, missing = self._ledger.settle(steps.number, steps.mode == header.decode, events)
        if self._ledger.headless:
            faults.append("the beginning is missing, and with it an unknown number of iterations")
        faults += [f"the recording stopped: {event['reason']}" for event in events if event["event"] == "stop"]
        return Recording(
            header=header,
            steps=steps,
            rows=Rows.joined(pieces),
            rids=tuple(self._rids),
            changes=np.concatenate([piece.switches for piece in pieces]),
            events=events,
            decode_number=decode_number,
            faults=tuple(faults),
            lost=max(missing + dropped, len(faults)),
            ended=any(event["event"] == "end" for event in events),
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImportFileError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
