"""What the hooks see of SGLang, imitated: requests as large as its own, batches, results, a scheduler without work."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import count

ROUNDS_A_REQUEST = 128
# Attributes of SGLang 0.5.15's Req and ScheduleBatch, all set in their constructors: a large object is slower to read.
ATTRIBUTES, BATCH_ATTRIBUTES = 134, 76
DRAFTS = 3
FILLER = {f"attribute_{index}": None for index in range(BATCH_ATTRIBUTES - 6)}


class ForwardMode(IntEnum):
    """Two of SGLang's."""

    EXTEND = 1
    DECODE = 2


class Req:
    """As large as SGLang's."""

    def __init__(self, number: int) -> None:
        for index in range(ATTRIBUTES - 5):
            setattr(self, f"attribute_{index}", None)
        self.rid = f"{number:032x}"
        self.output_ids = array("q", [0])
        self.finished_reason = None
        self.is_retracted = False
        self.inflight_middle_chunks = 0


@dataclass
class Batch:
    """The part of ScheduleBatch that the hooks read, in an object as large."""

    reqs: list[Req]
    forward_iter: int = 0
    forward_mode: ForwardMode = ForwardMode.DECODE
    extend_lens: list[int] | None = None
    prefix_lens: list[int] | None = None
    decoding_reqs: list[Req] | None = None

    def __post_init__(self) -> None:
        vars(self).update(FILLER)


class Event:
    """A device event that has happened."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


@dataclass
class Result:
    """The part of GenerationBatchResult that the hooks read; it is a small object there too."""

    copy_done: Event
    num_correct_drafts_per_req_cpu: list[int] | None = None
    can_run_cuda_graph: bool = True
    speculative_num_draft_tokens: int = DRAFTS + 1


@dataclass
class Worker:
    """A draft worker with a fixed depth."""

    speculative_num_steps: int = DRAFTS


class Scheduler:
    """The functions on the way of an iteration, without their work."""

    def __init__(self, batch_size: int) -> None:
        self.draft_worker = Worker()
        self.running_batch = Batch([])
        self.waiting_queue: list[Req] = []
        self.forward_ct = 0
        self.accepted = [1, 0, 2, 0, 1, 3, 0, 0] * (batch_size // 8 + 1)
        self.batch_size = batch_size
        self.copied = Event()

    def run_batch(self, batch: Batch, pp_proxy_tensors: object = None) -> Result:
        self.forward_ct += 1
        batch.forward_iter = self.forward_ct
        return Result(self.copied)

    def process_batch_result_decode(self, batch: Batch, result: Result) -> None:
        result.num_correct_drafts_per_req_cpu = self.accepted[: self.batch_size]

    def process_batch_result_prefill(self, batch: Batch, result: Result) -> None:
        pass


def iterations(scheduler: Scheduler) -> Iterator[int]:
    """Nanoseconds of each iteration, without end."""
    size = scheduler.batch_size
    reqs = [Req(number) for number in range(size)]
    scheduler.running_batch.reqs = reqs
    # Nobody is freed, because without hooks that would happen outside of what is timed.
    everybody = reqs[:]
    for turn in count():
        due = range(turn % ROUNDS_A_REQUEST, size, ROUNDS_A_REQUEST)
        new = [Req(size * (turn + 1) + age) for age in due]
        everybody += new
        for age, req in zip(due, new, strict=True):
            reqs[age] = req
        if new:
            prefill = Batch(new, 0, ForwardMode.EXTEND, [5] * len(new), [0] * len(new))
            start = time.perf_counter_ns()
            scheduler.process_batch_result_prefill(prefill, scheduler.run_batch(prefill))
            yield time.perf_counter_ns() - start
        decode = Batch(reqs[:])
        start = time.perf_counter_ns()
        scheduler.process_batch_result_decode(decode, scheduler.run_batch(decode))
        yield time.perf_counter_ns() - start
