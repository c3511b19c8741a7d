"""Turns SGLang's scheduler objects into records, in the scheduler's thread, without ever raising into it.

The hot path reads three attributes a row, builds one `bytes` object and copies it: no thread, no lock, no
system call. The first exception of any kind ends the recording: the reason is written to the trace, later
iterations are counted as dropped, and the server goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from struct import Struct
from time import monotonic_ns, time_ns
from typing import Any
from zlib import crc32

from speckit_trace import layout
from speckit_trace.layout import CHECKSUM, GRAPH_BIT, NO_DEPTH, NO_DRAFTS, RESIDUE, SATURATED, first_word, sealed
from speckit_trace.stream import SEGMENT_BYTES, Stream

_REASON_LIMIT = 300  # characters; a stop must fit into the reserve of a segment

_NEVER_LAUNCHED = (0, NO_DEPTH, 0, 0)


class Recorder:
    """Records what the hooks show it; see Stream for the arguments and what it raises at the start."""

    # What depends on the requests at hand alone, made by _shape.
    _reqs: list[Any]
    _outputs: list[Any]
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
            head = (number, launch_ns, self._ready_ns, drafted, depth, mode, running, waiting)
            self._write_iteration(head, self._no_accepted if accepted is None else bytes(accepted), self._flags)
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    def processed(self, batch: Any, result: Any) -> None:
        """Record an iteration of any other mode, before SGLang acts on its result; nothing was drafted in it."""
        if self.stopped is not None:
            return self._drop()
        try:
            self.batch = batch
            self._shape(batch.reqs)
            self._read(result)
            number = batch.forward_iter
            launch_ns, _, running, waiting = self._launched.pop(number, _NEVER_LAUNCHED)
            mode = int(batch.forward_mode) | (GRAPH_BIT if result.can_run_cuda_graph else 0)
            nothing = (NO_DRAFTS, NO_DEPTH)
            decoding = batch.decoding_reqs or ()
            flags = bytes(_state(r) | _part(r, decoding) for r in batch.reqs)
            head = (number, launch_ns, self._ready_ns, *nothing, mode, running, waiting)
            self._write_iteration(head, self._no_accepted, flags)
            if batch.extend_lens is not None:
                first = first_word(layout.PREFILL, layout.PREFILL_RECORD.size + 4)
                tokens = sum(batch.extend_lens), sum(batch.prefix_lens)
                self.stream.put(sealed(layout.PREFILL_RECORD.pack(first, number, *tokens)))
        except Exception as error:  # see launched
            self._stop(error)
            self._drop()

    # ---------------------------------------------------------------- rarely

    def switched(self, controller: Any, before: int, after: int) -> None:
        """Record that the adaptive controller put another depth in force, with the slot it decided in."""
        if self.stopped is not None:
            return
        try:
            slot, average = _slot(controller, len(self.batch.reqs))
            number = self.batch.forward_iter
            # A launch is kept until its result is recorded, so a batch that is still kept is being processed.
            by_result = number in self._launched
            first = first_word(layout.SWITCH, layout.SWITCH_RECORD.size + 4)
            fields = (first, number, monotonic_ns(), before, after, by_result, slot, average)
            self.stream.put(sealed(layout.SWITCH_RECORD.pack(*fields)))
        except Exception as error:  # see launched
            self._stop(error)

    def event(self, name: str, **details: Any) -> None:
        """Record something about the recording itself: its start, a flush, a pause."""
        if self.stopped is not None:
            return
        try:
            self.stream.put(_event(name, **details))
        except Exception as error:  # see launched
            self._stop(error)

    def forget(self) -> None:
        """Let go of SGLang's objects; they would pin finished requests while the server idles."""
        if self.batch is not None:
            self.batch = None
            self._shape([])
            self._launched.clear()

    def end(self, **details: Any) -> None:
        """Write the last record and close the file; later iterations count as dropped."""
        if self.stopped is not None:
            return
        self.stopped = "ended"
        self.forget()
        with suppress(Exception):
            self.stream.put_last(_event("end", iterations=self.iterations, **details))
            self.stream.close()

    # ---------------------------------------------------------------- reading and writing

    def _read(self, result: Any) -> None:
        reqs = self._reqs
        self._lengths = list(map(len, self._outputs))
        # A test that almost always finds nothing is cheaper than a column that is almost always zero.
        special = [r for r in reqs if r.finished_reason is not None or r.is_retracted]
        self._flags = bytes(map(_state, reqs)) if special else self._no_flags
        # Last, so that all of the above is done while the device is still busy.
        copied = result.copy_done
        if copied is not None:
            copied.synchronize()
        else:
            _wait_for_tokens(result)
        self._ready_ns = monotonic_ns()

    def _write_iteration(self, head: tuple[int, ...], accepted: bytes, flags: bytes) -> None:
        stream = self.stream
        if stream.position + self._size > stream.limit:
            stream.turn(self._size)
        body = self._pack(self._first, *head, *self._lengths) + stream.column + accepted + flags
        stream.segment.write(body + CHECKSUM(crc32(body, RESIDUE)))
        stream.position += self._size
        self.iterations += 1

    def _remember_mode(self, mode: Any) -> None:
        """Arithmetic on an enum member is slow, and the mode of decodes never changes."""
        self._mode = mode
        self._plain_code, self._graph_code = int(mode), int(mode) | GRAPH_BIT

    def _shape(self, reqs: list[Any]) -> None:
        """Prepare what changes only when requests come or go: their numbers and the layout of a record."""
        rows = len(reqs)
        # A copy, because SGLang extends the list of a running batch in place.
        self._reqs = reqs[:]
        # SGLang gives a request a new list of tokens only between a retraction and the prefill that follows it,
        # and every prefill comes here.
        self._outputs = [r.output_ids for r in reqs]
        self._size = layout.ITERATION_BYTES + layout.ROW_BYTES * rows
        self._first = first_word(layout.ITERATION, self._size)
        self._pack = Struct(f"{layout.ITERATION_HEAD.format}{rows}I").pack
        self._no_accepted = bytes([layout.NO_ACCEPTED]) * rows
        self._no_flags = bytes(rows)
        self.stream.name([r.rid for r in reqs], self._size)

    # ---------------------------------------------------------------- stopping

    def _drop(self) -> None:
        self.dropped += 1
        with suppress(Exception):
            self.stream.segment.set_dropped(self.dropped)

    def _stop(self, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self.stopped = "".join(c if c.isascii() and c.isprintable() else "?" for c in reason)[:_REASON_LIMIT]
        self.batch = None
        self._reqs = []
        self._launched.clear()
        with suppress(Exception):
            self.stream.put_last(_event("stop", reason=self.stopped))


def _event(name: str, **details: Any) -> bytes:
    clocks = {"monotonic_ns": monotonic_ns(), "wall_ns": time_ns()}
    return layout.text_record(layout.EVENT, json.dumps({"event": name, **clocks, **details}))


def _wait_for_tokens(result: Any) -> None:
    """How SGLang waits without overlap and without speculation: by reading the tokens, if a device has them."""
    tokens: Any = getattr(result, "next_token_ids", None)
    if hasattr(tokens, "tolist"):
        tokens.tolist()


def _state(req: Any) -> int:
    finished = layout.FINISHED if req.finished_reason is not None else 0
    return finished | layout.RETRACTED if req.is_retracted else finished


def _part(req: Any, decoding: Any) -> int:
    """What a row does in a batch that prefills: decodes along, or has a part of its prompt still to come."""
    if req in decoding:
        return layout.DECODING
    return layout.CHUNK if req.inflight_middle_chunks > 0 else 0


def _slot(controller: Any, batch_size: int) -> tuple[int, float]:
    """Batch-size slot of SGLang's own policy and its moving average; another policy has neither."""
    policy = controller.params
    try:
        padded = policy._pad_to_cuda_graph_bs(batch_size)
        return policy._find_closest_bs(padded), policy._route(batch_size).ema_accept_len
    except (AttributeError, TypeError, LookupError):
        return layout.NO_SLOT, float("nan")
