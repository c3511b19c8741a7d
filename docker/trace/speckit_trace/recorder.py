"""Turns SGLang's scheduler objects into records, in the scheduler's thread, without ever raising into it.

The hot path reads three attributes a row, builds one `bytes` object and copies it: no thread, no lock, no
system call. The first exception of any kind ends the recording: the reason is written to the trace, later
iterations are counted as dropped, and the server goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns
from typing import Any
from zlib import crc32

from speckit_trace import layout
from speckit_trace.layout import (
    GRAPH_BIT,
    NO_DEPTH,
    NO_DRAFTS,
    RESIDUE,
    SATURATED,
    WORD,
    WORD_BYTES,
    Switch,
)
from speckit_trace.reading import part_of, reason_of, slot_of, state_of, wait_for
from speckit_trace.shape import Shape
from speckit_trace.stream import SEGMENT_BYTES, Stream, event_record

_NEVER_LAUNCHED = (0, NO_DEPTH, 0, 0)


class Recorder:
    """Records what the hooks show it; see Stream for the arguments and what it raises at the start."""

    # What was read of a result that is being processed.
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
        self._mode: Any = None
        self._nobody = self._shape = Shape([], self.stream)  # of the last decode

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
            shape = self._shape
            if batch.reqs != shape.reqs:
                shape = self._shape = Shape(batch.reqs, self.stream)
            self._lengths = list(map(len, shape.outputs))
            # A test that almost always finds nothing is cheaper than a column that is almost always zero.
            special = [r for r in shape.reqs if r.finished_reason is not None or r.is_retracted]
            self._flags = bytes(map(state_of, shape.reqs)) if special else shape.no_flags
            # Last, so that all of the above is done while the device is still busy.
            wait_for(result)
            self._ready_ns = monotonic_ns()
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
            shape = self._shape
            head = shape.pack(
                shape.first, number, launch_ns, self._ready_ns, drafted, depth, mode, running, waiting, *self._lengths
            )
            self._commit(shape, head, shape.no_accepted if accepted is None else bytes(accepted), self._flags)
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    def processed(self, batch: Any, result: Any) -> None:
        """Record an iteration of any other mode, before SGLang acts on its result; nothing was drafted in it."""
        if self.stopped is not None:
            return self._drop()
        try:
            self.batch = batch
            self.stream.name([r.rid for r in batch.reqs], 0)
            shape = self._shape = Shape(batch.reqs, self.stream)
            self._lengths = list(map(len, shape.outputs))
            decoding = batch.decoding_reqs or ()
            flags = bytes([state_of(r) | part_of(r, decoding) for r in shape.reqs])
            wait_for(result)
            ready_ns = monotonic_ns()
            number = batch.forward_iter
            launch_ns, _, running, waiting = self._launched.pop(number, _NEVER_LAUNCHED)
            mode = int(batch.forward_mode) | (GRAPH_BIT if result.can_run_cuda_graph else 0)
            when = (number, launch_ns, ready_ns)
            head = shape.pack(shape.first, *when, NO_DRAFTS, NO_DEPTH, mode, running, waiting, *self._lengths)
            self._commit(shape, head, shape.no_accepted, flags)
            if batch.extend_lens is not None:
                self.stream.put(layout.prefill_record(number, sum(batch.extend_lens), sum(batch.prefix_lens or ())))
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
            self.stream.put(Switch(number, monotonic_ns(), before, after, by_result, slot, average).record())
        except Exception as error:  # see launched
            self._stop(error)

    def event(self, name: str, **details: Any) -> None:
        """Record something about the recording itself: its start, a flush, a pause."""
        if self.stopped is not None:
            return
        try:
            self.stream.put(event_record(name, **details))
        except Exception as error:  # see launched
            self._stop(error)

    def forget(self) -> None:
        """Let go of SGLang's objects; they would pin finished requests while the server idles."""
        self.batch = None
        self._shape = self._nobody
        self._launched.clear()

    def end(self, **details: Any) -> None:
        """Write the last record and close the file; later iterations count as dropped."""
        if self.stopped is not None:
            return
        self.stopped = "ended"
        self.forget()
        with suppress(Exception):
            self.stream.put_last(event_record("end", iterations=self.iterations, **details))
            self.stream.close()

    # ---------------------------------------------------------------- reading and writing

    def _commit(self, shape: Shape, head: bytes, accepted: bytes, flags: bytes) -> None:
        """Append an iteration: its packed head and output lengths, then the other columns."""
        stream = self.stream
        end = stream.position + shape.size
        if end > stream.limit or shape.segment is not stream.segment:
            shape = self._renamed(shape)
            end = stream.position + shape.size
        body = head + shape.column + accepted + flags
        if len(body) + WORD_BYTES != shape.size:
            raise ValueError(f"{len(accepted)} accepted counts for {len(shape.reqs)} requests")
        stream.write(body + WORD(crc32(body, RESIDUE)))
        stream.position = end
        self.iterations += 1

    def _renamed(self, shape: Shape) -> Shape:
        """The same requests, in a segment that has room for their rows."""
        self.stream.name([r.rid for r in shape.reqs], shape.size)
        renamed = Shape(shape.reqs, self.stream)
        if self._shape is shape:
            self._shape = renamed
        return renamed

    def _remember_mode(self, mode: Any) -> None:
        """Arithmetic on an enum member is slow, and the mode of decodes never changes."""
        self._mode = mode
        self._plain_code, self._graph_code = int(mode), int(mode) | GRAPH_BIT

    def _drop(self) -> None:
        self.dropped += 1
        with suppress(Exception):
            self.stream.segment.set_dropped(self.dropped)

    def _stop(self, error: Exception) -> None:
        self.stopped = reason_of(error)
        self.forget()
        with suppress(Exception):
            self.stream.put_last(event_record("stop", reason=self.stopped))
