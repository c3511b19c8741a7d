"""Turns SGLang's scheduler objects into records, in the scheduler's thread, without ever raising into it.

The hot path reads three attributes a row, builds one `bytes` object and copies it: no thread, no lock, no
system call. The first exception of any kind ends the recording: the reason is written to the trace, later
iterations are counted as dropped, and the server goes on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from struct import Struct
from time import monotonic_ns
from typing import Any
from zlib import crc32

from speckit_trace import layout
from speckit_trace.layout import (
    CHECKSUM,
    CHECKSUM_BYTES,
    GRAPH_BIT,
    NO_DEPTH,
    NO_DRAFTS,
    RESIDUE,
    SATURATED,
    Switch,
    first_word,
)
from speckit_trace.reading import part_of, reason_of, slot_of, state_of, wait_for_tokens
from speckit_trace.stream import SEGMENT_BYTES, Stream, event_record

# Requests known beside those of two batches until the ones that left are forgotten.
_KNOWN_EXTRA = 256

# Bytes, first word and packer of an iteration with so many rows, and its columns when there is nothing to tell.
_Layout = tuple[int, int, Callable[..., bytes], bytes, bytes]

_NEVER_LAUNCHED = (0, NO_DEPTH, 0, 0)


class Recorder:
    """Records what the hooks show it; see Stream for the arguments and what it raises at the start."""

    # What depends on the requests at hand alone, made by _shape.
    _reqs: list[Any]
    _outputs: tuple[Any, ...]
    _column: bytes
    _size: int
    _first: int
    _pack: Callable[..., bytes]
    _no_accepted: bytes
    _no_flags: bytes
    # What is read from a result by _read, until the iteration is recorded.
    _ready_ns: int
    _lengths: list[int]
    _flags: bytes

    def __init__(self, directory: Path, facts: Mapping[str, Any], *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.iterations = 0
        self.dropped = 0
        self.stopped: str | None = None
        self.batch: Any = None  # being launched or processed right now; gives an adaptive switch its batch size
        self.stream = Stream(directory, facts, segment_bytes=segment_bytes)
        self._launched: dict[int, tuple[int, int, int, int]] = {}
        self._numbers: dict[str, int] = {}  # of the requests that the segment has named
        self._named = 0
        self._known: dict[Any, tuple[int, Any]] = {}  # number and output tokens of recent requests
        self._layouts: dict[int, _Layout] = {}
        self._mode: Any = None
        self._shape([])

    # ---------------------------------------------------------------- once an iteration

    def launched(self, scheduler: Any, batch: Any, launch_ns: int) -> None:
        """Keep what is only true while the batch is launched, under its iteration number.

        The depth is read here because with overlap the worker may have switched when the result comes back.
        """
        if self.stopped is not None:
            return
        try:
            worker = scheduler.draft_worker
            depth = None if worker is None else worker.speculative_num_steps
            running, waiting = len(scheduler.running_batch.reqs), len(scheduler.waiting_queue)
            self._launched[batch.forward_iter] = (
                launch_ns,
                NO_DEPTH if depth is None else depth,
                running if running < SATURATED else SATURATED,
                waiting if waiting < SATURATED else SATURATED,
            )
        except Exception as error:  # whatever it is, it must not reach the scheduler
            self._stop(error)

    def ready(self, batch: Any, result: Any) -> None:
        """Read the rows of a decode before SGLang changes them, then wait for its result, as SGLang is about to do."""
        if self.stopped is not None:
            return
        try:
            self.batch = batch
            if batch.reqs != self._reqs:
                self._shape(batch.reqs)
            self._read(result)
        except Exception as error:  # see launched
            self._stop(error)

    def decoded(self, batch: Any, result: Any) -> None:
        """Record a decode iteration whose result was `ready`, now that SGLang has counted what was accepted."""
        if self.stopped is not None:
            return self._drop()
        try:
            number = batch.forward_iter
            launch_ns, depth, running, waiting = self._launched.pop(number, _NEVER_LAUNCHED)
            drafts = result.speculative_num_draft_tokens
            if batch.forward_mode is not self._mode:
                self._remember_mode(batch.forward_mode)
            mode = self._graph_code if result.can_run_cuda_graph else self._plain_code
            accepted = result.num_correct_drafts_per_req_cpu
            drafted = NO_DRAFTS if drafts is None else drafts
            head = self._pack(
                self._first, number, launch_ns, self._ready_ns, drafted, depth, mode, running, waiting, *self._lengths
            )
            self._commit(head, self._no_accepted if accepted is None else bytes(accepted), self._flags)
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    def processed(self, batch: Any, result: Any) -> None:
        """Record an iteration of any other mode, before SGLang acts on its result; nothing was drafted in it."""
        if self.stopped is not None:
            return self._drop()
        try:
            self.batch = batch
            # SGLang gives a request a new list of tokens only between a retraction and the prefill after it.
            for req in batch.reqs:
                self._known.pop(req, None)
            self._shape(batch.reqs)
            self._read(result)
            number = batch.forward_iter
            launch_ns, _, running, waiting = self._launched.pop(number, _NEVER_LAUNCHED)
            mode = int(batch.forward_mode) | (GRAPH_BIT if result.can_run_cuda_graph else 0)
            decoding = batch.decoding_reqs or ()
            flags = bytes([state_of(r) | part_of(r, decoding) for r in batch.reqs])
            when = (number, launch_ns, self._ready_ns)
            head = self._pack(self._first, *when, NO_DRAFTS, NO_DEPTH, mode, running, waiting, *self._lengths)
            self._commit(head, self._no_accepted, flags)
            if batch.extend_lens is not None:
                self._put(layout.prefill_record(number, sum(batch.extend_lens), sum(batch.prefix_lens or ())))
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    def switched(self, controller: Any, before: int, after: int) -> None:
        """Record that the adaptive controller put another depth in force, with the slot it decided in."""
        if self.stopped is not None:
            return
        try:
            number = self.batch.forward_iter
            # A launch is kept until its result is recorded, so a batch that is still kept is being processed.
            by_result = number in self._launched
            slot, average = slot_of(controller, len(self.batch.reqs))
            self._put(Switch(number, monotonic_ns(), before, after, by_result, slot, average).record())
        except Exception as error:  # see launched
            self._stop(error)

    def event(self, name: str, **details: Any) -> None:
        """Record something about the recording itself: its start, a flush, a pause."""
        if self.stopped is not None:
            return
        try:
            self._put(event_record(name, **details))
        except Exception as error:  # see launched
            self._stop(error)

    def forget(self) -> None:
        """Let go of SGLang's objects; they would pin finished requests while the server idles."""
        if self.batch is not None:
            self.batch = None
            self._shape([])
            self._known.clear()
            self._launched.clear()

    def end(self, **details: Any) -> None:
        """Write the last record and close the file; later iterations count as dropped."""
        if self.stopped is not None:
            return
        self.stopped = "ended"
        self.forget()
        with suppress(Exception):
            self.stream.put(event_record("end", iterations=self.iterations, **details))
            self.stream.close()

    # ---------------------------------------------------------------- reading and writing

    def _read(self, result: Any) -> None:
        reqs = self._reqs
        self._lengths = list(map(len, self._outputs))
        # A test that almost always finds nothing is cheaper than a column that is almost always zero.
        special = [r for r in reqs if r.finished_reason is not None or r.is_retracted]
        self._flags = bytes(map(state_of, reqs)) if special else self._no_flags
        # Last, so that all of the above is done while the device is still busy.
        copied = result.copy_done
        if copied is not None:
            copied.synchronize()
        else:
            wait_for_tokens(result)
        self._ready_ns = monotonic_ns()

    def _commit(self, head: bytes, accepted: bytes, flags: bytes) -> None:
        """Append an iteration: its packed head and output lengths, then the other columns."""
        stream = self.stream
        if stream.position + self._size > stream.limit:
            self._turn(self._size)
        body = head + self._column + accepted + flags
        if len(body) + CHECKSUM_BYTES != self._size:
            raise ValueError(f"{len(accepted)} accepted counts for {len(self._reqs)} requests")
        stream.write(body + CHECKSUM(crc32(body, RESIDUE)))
        stream.position += self._size
        self.iterations += 1

    def _remember_mode(self, mode: Any) -> None:
        """Arithmetic on an enum member is slow, and the mode of decodes never changes."""
        self._mode = mode
        self._plain_code, self._graph_code = int(mode), int(mode) | GRAPH_BIT

    def _put(self, record: bytes) -> None:
        if self.stream.position + len(record) > self.stream.limit:
            self._turn(len(record))
        self.stream.put(record)

    # ---------------------------------------------------------------- when requests come or go

    def _shape(self, reqs: list[Any]) -> None:
        """Prepare what changes only with the requests: the layout of their record and the column of their numbers."""
        # A copy, because SGLang extends the list of a running batch in place.
        self._reqs = reqs[:]
        made = self._layouts.get(len(reqs)) or self._layout(len(reqs))
        self._size, self._first, self._pack, self._no_accepted, self._no_flags = made
        entries = list(map(self._known.get, reqs))
        if not all(entries):
            self._introduce([req for req, entry in zip(reqs, entries, strict=True) if entry is None])
            entries = list(map(self._known.get, reqs))
        numbers, self._outputs = zip(*entries, strict=True) if entries else ((), ())
        self._column = array("H", numbers).tobytes()

    def _introduce(self, strangers: list[Any]) -> None:
        """Get to know requests; those that the segment has not named yet are named, in front of their rows."""
        numbers = self._numbers
        rids = [r.rid for r in strangers if r.rid not in numbers]
        names = layout.rids_record(rids)
        full = self._named + len(rids) > layout.MAX_REQUESTS
        if full or self.stream.position + len(names) + self._size > self.stream.limit:
            return self._turn(self._size)
        if rids:
            self._announce(rids, names)
        if len(self._known) > _KNOWN_EXTRA + 2 * len(self._reqs):
            self._known.clear()
            strangers = self._reqs
        self._known.update((r, (numbers[r.rid], r.output_ids)) for r in strangers)

    def _announce(self, rids: list[str], names: bytes) -> None:
        self.stream.put(names)
        self._numbers.update(zip(rids, count(self._named), strict=False))
        self._named += len(rids)

    def _turn(self, room: int) -> None:
        """Go on in a new segment, which names the requests at hand again and then has so much room."""
        rids = [r.rid for r in self._reqs]
        names = layout.rids_record(rids)
        self.stream.turn(len(names) + room)
        self._numbers.clear()
        self._named = 0
        self._announce(rids, names)
        self._known.clear()
        self._known.update((r, (self._numbers[r.rid], r.output_ids)) for r in self._reqs)
        self._column = array("H", map(self._numbers.__getitem__, rids)).tobytes()

    def _layout(self, rows: int) -> _Layout:
        size = layout.ITERATION_BYTES + layout.ROW_BYTES * rows
        pack = Struct(f"{layout.ITERATION_HEAD.format}{rows}I").pack
        made = (size, first_word(layout.ITERATION, size), pack, bytes([layout.NO_ACCEPTED]) * rows, bytes(rows))
        self._layouts[rows] = made
        return made

    def _drop(self) -> None:
        self.dropped += 1
        with suppress(Exception):
            self.stream.set_dropped(self.dropped)

    def _stop(self, error: Exception) -> None:
        self.stopped = reason_of(error)
        self.batch = None
        self._reqs, self._outputs = [], ()
        self._known.clear()
        self._launched.clear()
        with suppress(Exception):
            self.stream.put(event_record("stop", reason=self.stopped))
