"""Turns SGLang's scheduler objects into records, in the scheduler's thread, without ever raising into it.

The hot path reads three attributes a row, builds one `bytes` object and copies it: no thread, no lock, no
system call. The first exception of any kind ends the recording: the reason is written to the trace, later
iterations are counted as dropped, and the server goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns
from typing import Any
from zlib import crc32

from speckit_trace import layout
from speckit_trace.layout import GRAPH_BIT, NO_DEPTH, NO_DRAFTS, RESIDUE, SATURATED, WORD, WORD_BYTES, Switch
from speckit_trace.reading import prefilled, reason_of, slot_of, state_of, wait_for
from speckit_trace.shape import Shape
from speckit_trace.shape import frame as frame_of
from speckit_trace.stream import SEGMENT_BYTES, Stream, event_record

_pack_head, _pack_one, _pack_prefill = layout.HEAD.pack, layout.ONE.pack, layout.PREFILL_HEAD.pack
_join = b"".join
_NEVER_LAUNCHED = (0, NO_DEPTH, 0, 0)


class Recorder:
    """Records what the hooks show it; see Stream for the arguments and what it raises at the start."""

    # What was read of a result that is being processed.
    _ready_ns: int
    _lengths: list[int]
    _flags: bytes | None

    def __init__(self, directory: Path, facts: Mapping[str, Any], *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.iterations = 0
        self.dropped = 0
        self.stopped: str | None = None
        self.batch: Any = None  # being launched or processed right now; gives an adaptive switch its batch size
        self.stream = Stream(directory, facts, segment_bytes=segment_bytes)
        self._launched: dict[int, tuple[int, int, int, int]] = {}
        self._shape: Shape | None = None  # of the last decode, if nothing else came since

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
            if shape is None or batch.reqs != shape.reqs:
                shape = self._shape = Shape(batch.reqs, batch.forward_mode)
            # A test that almost always finds nothing is cheaper than a column that is almost always zero.
            if (only := shape.only) is not None:  # a comprehension costs three times its one item
                plain = only.finished_reason is None and not only.is_retracted
                self._lengths = [len(only.output_ids)]
            else:
                self._lengths = [
                    len(r.output_ids) for r in shape.reqs if r.finished_reason is None and not r.is_retracted
                ]
                plain = len(self._lengths) == len(shape.reqs)
            self._flags = None if plain else self._read_special(shape.reqs)
            # Last, so that all of the above is done while the device is still busy.
            wait_for(result) if (copied := result.copy_done) is None else copied.synchronize()
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
            shape, stream, ready_ns, lengths = self._shape, self.stream, self._ready_ns, self._lengths
            drafts = result.speculative_num_draft_tokens
            if drafts is None:
                drafts = NO_DRAFTS
            mode = shape.graph if result.can_run_cuda_graph else shape.plain
            frame, accepted = shape.frame, result.num_correct_drafts_per_req_cpu
            if accepted is None:
                accepted = frame.no_accepted
            position = stream.position
            end = position + frame.short_size
            if end > shape.limit or self._flags is not None:
                head = number, launch_ns, ready_ns, drafts, depth, mode, running, waiting
                return self._commit_full(shape, head, accepted)
            first = frame.short_first
            if shape.only is not None:
                (tokens,), (taken,) = lengths, accepted
                body = _pack_one(
                    first, number, launch_ns, ready_ns, drafts, depth, mode, running, waiting, tokens, taken
                )
            else:
                head = _pack_head(first, number, launch_ns, ready_ns, drafts, depth, mode, running, waiting)
                body = _join((head, frame.pack_tokens(*lengths), bytes(accepted), frame.padding))
            stream.bytes[position:end] = body + WORD(crc32(body, RESIDUE))
            stream.position = end
            self.iterations += 1
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    def processed(self, batch: Any, result: Any) -> None:
        """Record an iteration of any other mode, before SGLang acts on its result; nothing was drafted in it."""
        if self.stopped is not None:
            return self._drop()
        try:
            self.batch, self._shape = batch, None
            reqs, frame = batch.reqs, frame_of(len(batch.reqs))
            lengths, flags = prefilled(reqs, batch.decoding_reqs)
            numbers = self.stream.numbered([r.rid for r in reqs], frame.prefill_size)
            wait_for(result)
            ready_ns = monotonic_ns()
            number = batch.forward_iter
            launch_ns, _, running, waiting = self._launched.pop(number, _NEVER_LAUNCHED)
            mode = int(batch.forward_mode) | (GRAPH_BIT if result.can_run_cuda_graph else 0)
            head = number, launch_ns, ready_ns, NO_DRAFTS, NO_DEPTH, mode, running, waiting
            new = batch.extend_lens
            if new is None:
                packed = _pack_head(frame.full_first, *head)
            else:
                packed = _pack_prefill(frame.prefill_first, *head, sum(new), sum(batch.prefix_lens or ()))
            columns = (
                frame.pack_tokens(*lengths),
                frame.pack_requests(*numbers),
                frame.no_accepted,
                flags or frame.no_flags,
            )
            self._append(_join((packed, *columns)))
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
        self.batch = self._shape = None
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

    def _commit_full(self, shape: Shape, head: Sequence[int], accepted: Sequence[int]) -> None:
        """Append a decode that says who is in it; short ones of the same requests may follow."""
        frame, stream = shape.frame, self.stream
        requests = frame.pack_requests(*stream.numbers_of(shape.reqs, frame.full_size))
        packed = _pack_head(frame.full_first, *head)
        tokens, flags = frame.pack_tokens(*self._lengths), self._flags or frame.no_flags
        body = _join((packed, tokens, requests, bytes(accepted), flags))
        if len(body) + WORD_BYTES != frame.full_size:
            raise ValueError(f"{len(accepted)} accepted counts for {len(shape.reqs)} requests")
        self._append(body)
        shape.limit = stream.limit

    def _append(self, body: bytes) -> None:
        """Append an iteration in a segment that is known to have room for it."""
        self.stream.put_last(body + WORD(crc32(body, RESIDUE)))
        self.iterations += 1

    def _put(self, record: bytes) -> None:
        """Append any other record. It may begin a segment, which must be told anew who is in the batch."""
        self.stream.put(record)
        if self._shape is not None:
            self._shape.limit = 0

    def _read_special(self, reqs: list[Any]) -> bytes:
        """Read all rows of a batch in which some are special; what those are."""
        self._lengths = [len(r.output_ids) for r in reqs]
        return bytes(map(state_of, reqs))

    def _drop(self) -> None:
        self.dropped += 1
        with suppress(Exception):
            self.stream.segment.set_dropped(self.dropped)

    def _stop(self, error: Exception) -> None:
        self.stopped = reason_of(error)
        self.forget()
        with suppress(Exception):
            self.stream.put_last(event_record("stop", reason=self.stopped))
