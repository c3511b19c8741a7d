"""An endless sequence of records, cut into segment files that can each be read on their own.

Rows refer to requests by number. A segment names the requests it has rows of, and numbers them as it does.
"""

from __future__ import annotations

import json
import os
import uuid
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

    The next record begins at `position` of `segment`, and may end at `limit`. Whoever writes into its
    `bytes` directly keeps both. `numbers` are those of the requests that the segment has named.

    Args:
        directory: where segments go; must exist.
        facts: what every segment says about server and plugin; JSON values only.
        segment_bytes: size of a segment; one that must hold more is larger.

    Raises:
        OSError: the first segment cannot be created, for example on a full disk.
    """

    def __init__(self, directory: Path, facts: Mapping[str, Any], *, segment_bytes: int) -> None:
        self.id = uuid.uuid4()
        self.position = self.limit = 0
        self.numbers: dict[str, int] = {}
        self._named = 0  # two requests of one name count twice
        self._directory = directory
        self._header = layout.text_record(layout.HEADER, json.dumps({**facts, "pid": os.getpid()}))
        self._segment_bytes = segment_bytes
        self._mapped = can_map(directory)
        self._count = count()
        self.segment = self._opened(0)

    def put(self, record: bytes) -> None:
        """Append a record, in a new segment if it has to be."""
        if self.position + len(record) > self.limit:
            self.turn(len(record))
        self.put_last(record)

    def put_last(self, record: bytes) -> None:
        """Append a record where another one might not fit any more."""
        end = self.position + len(record)
        self.bytes[self.position : end] = record
        self.position = end

    def numbers_of(self, reqs: list[Any], room: int) -> list[int]:
        """What `numbered` gives for the names of these, who almost always have their numbers already."""
        numbers = self.numbers
        if self.position + room <= self.limit:
            try:
                return [numbers[r.rid] for r in reqs]
            except KeyError:
                pass
        return self.numbered([r.rid for r in reqs], room)

    def numbered(self, rids: list[str], room: int) -> list[int]:
        """Numbers of these requests, in a segment that then still has so much room."""
        numbers = self.numbers
        fresh = [rid for rid in rids if rid not in numbers]
        if fresh or self.position + room > self.limit:
            self._name(fresh, rids, room)
        return [numbers[rid] for rid in rids]

    def _name(self, fresh: list[str], rids: list[str], room: int) -> None:
        """Number `fresh`, or all of `rids` where a new segment has to be begun."""
        names = layout.rids_record(fresh)
        full = self._named + len(fresh) > layout.MAX_REQUESTS
        if full or self.position + len(names) + room > self.limit:
            fresh, names = rids, layout.rids_record(rids)
            self.turn(len(names) + room)
        if fresh:  # a record that names nobody would read as naming ""
            self.put_last(names)
        for number, rid in enumerate(fresh, self._named):
            self.numbers[rid] = number
        self._named += len(fresh)

    def turn(self, room: int) -> None:
        """Go on in a new segment that has so much room. When there is none to be had, the old one stays."""
        previous, used = self.segment, self.position
        self.segment = self._opened(room)
        self.numbers.clear()
        self._named = 0
        previous.close(used)

    def close(self) -> None:
        """Cut the file to what was written."""
        self.segment.close(self.position)

    def _opened(self, room: int) -> Segment:
        number = next(self._count)
        clocks = {"monotonic_ns": monotonic_ns(), "wall_ns": time_ns()}
        start = layout.segment_header(number, self.id.bytes, os.getpid(), **clocks) + self._header
        size = max(self._segment_bytes, len(start) + room + _RESERVE)
        path = self._directory / f"{self.id.hex}-{number:06d}{layout.SUFFIX}"
        segment = Segment(path, size, mapped=self._mapped)
        self.bytes = segment.bytes
        self.bytes[0 : len(start)] = start
        self.position, self.limit = len(start), size - _RESERVE
        return segment


def event_record(name: str, **details: Any) -> bytes:
    """Something about the recording itself, with both clocks."""
    clocks = {"monotonic_ns": monotonic_ns(), "wall_ns": time_ns()}
    return layout.text_record(layout.EVENT, json.dumps({"event": name, **clocks, **details}))
