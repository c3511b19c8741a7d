"""An endless sequence of records, cut into segment files that can each be read on their own.

Whoever writes rows first says which requests they belong to; a segment gives every request a number, and
gives it again when a new segment begins.
"""

from __future__ import annotations

import json
import os
import uuid
from array import array
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import Any

from speckit_trace import layout
from speckit_trace.segment import Segment, can_map

SEGMENT_BYTES = 1 << 20
# Room that only the last record of a segment may use, so that a full disk can still be reported.
_RESERVE = 1024


class Stream:
    """Segments of one process in one folder.

    Args:
        directory: where segments go; must exist.
        facts: what every segment says about server and plugin; JSON values only.
        segment_bytes: size of a segment; one that must hold more is larger.

    Raises:
        OSError: the first segment cannot be created, for example on a full disk.
    """

    def __init__(self, directory: Path, facts: Mapping[str, Any], *, segment_bytes: int) -> None:
        self.id = uuid.uuid4()
        self.position = self.limit = 0  # of the segment: where the next record begins, and must not pass
        self.column = b""  # numbers of the requests last named
        self._rids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._named = 0
        self._directory = directory
        self._header = layout.text_record(layout.HEADER, json.dumps({**facts, "pid": os.getpid()}))
        self._segment_bytes = segment_bytes
        self._mapped = can_map(directory)
        self._segments = count()
        self.segment = self._opened(0)

    def put(self, record: bytes) -> None:
        """Append a record, in a new segment if need be. Rows are written by hand, for speed."""
        if self.position + len(record) > self.limit:
            self.turn(len(record))
        self.segment.write(record)
        self.position += len(record)

    def put_last(self, record: bytes) -> None:
        """Append a record where no other fits any more."""
        self.segment.write(record)
        self.position += len(record)

    def name(self, rids: list[str], room: int) -> None:
        """Make `column` for these requests, in a segment that then has room for so many bytes of rows."""
        self._rids = rids
        numbers = self._numbers
        try:
            self.column = array("H", [numbers[rid] for rid in rids]).tobytes()
        except KeyError:
            self._name_fresh([rid for rid in rids if rid not in numbers], room)

    def turn(self, room: int) -> None:
        """Go on in a new segment, which names the requests last named and then has so much room."""
        names = layout.rids_record(self._rids)
        previous, used = self.segment, self.position
        self.segment = self._opened(len(names) + room)
        previous.close(used)
        self._numbers, self._named = {}, 0
        self._announce(self._rids, names)

    def close(self) -> None:
        """Cut the file to what was written."""
        self.segment.close(self.position)

    def _name_fresh(self, fresh: list[str], room: int) -> None:
        record = layout.rids_record(fresh)
        full = self._named + len(fresh) > layout.MAX_REQUESTS
        if full or self.position + len(record) + room > self.limit:
            self.turn(room)
        else:
            self._announce(fresh, record)

    def _announce(self, rids: list[str], record: bytes) -> None:
        self.put_last(record)
        self._numbers.update(zip(rids, count(self._named)))
        self._named += len(rids)
        self.column = array("H", [self._numbers[rid] for rid in self._rids]).tobytes()

    def _opened(self, room: int) -> Segment:
        number = next(self._segments)
        clocks = {"monotonic_ns": monotonic_ns(), "wall_ns": time_ns()}
        start = layout.segment_header(number, self.id.bytes, os.getpid(), **clocks) + self._header
        size = max(self._segment_bytes, len(start) + room + _RESERVE)
        path = self._directory / f"{self.id.hex}-{number:06d}{layout.SUFFIX}"
        segment = Segment(path, size, mapped=self._mapped)
        segment.write(start)
        self.position, self.limit = len(start), size - _RESERVE
        return segment
