"""What the trace costs and how fast it reads back: one JSON line, every number the median of five runs.

    python docker/trace/bench.py

Imitates what the hooks see: requests with as many attributes as SGLang's, which are prefilled, decode for
some rounds and give way to others, and functions wrapped as the plugin does it. Iterations
are decodes of the whole batch and prefills of those who are new in it. A cost is the difference between iterations
with hooks and the same without, taken in turns in blocks of some hundred; a run's figure is the median of its
blocks' means, because on a shared host a block in which the process was suspended says nothing about the hooks.
`cpu_us_...` is process CPU instead of time, which a busy host disturbs least. Between the blocks a loop of plain
Python is timed: `calibration_us` tells how slow the host was, and `calibration_fastest_us` how fast it can be.
Reading is timed up to and with the insertion into DuckDB.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from speckit_trace.hooks import Tracer
from speckit_trace.recorder import Recorder
from speckit_trace.targets import Proof

from kit.importers.trace import read_trace
from kit.records import Cell, Origin, Phase, Repetition, RunHeader
from kit.store import add_repetition, create_run

RUNS = 5
BLOCKS = 40
BLOCK = {1: 1500, 32: 500, 256: 100}  # iterations
ROUNDS_A_REQUEST = 128
ATTRIBUTES = 134  # of SGLang 0.5.15's Req, all set in its constructor
DRAFTS = 3
CALIBRATION = 10_000  # passes of a loop
HEADER = RunHeader("bench", Origin.SIMULATED, "bench", "{}", "", "", 1, "", "", {})


class ForwardMode(IntEnum):
    """Two of SGLang's."""

    EXTEND = 1
    DECODE = 2


class Req:
    """As large as SGLang's, because a large object is slower to read from."""

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
    """The part of ScheduleBatch that the hooks read."""

    reqs: list[Req]
    forward_iter: int = 0
    forward_mode: ForwardMode = ForwardMode.DECODE
    extend_lens: list[int] | None = None
    prefix_lens: list[int] | None = None
    decoding_reqs: list[Req] | None = None


class Event:
    """A device event that has happened."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


@dataclass
class Result:
    """The part of GenerationBatchResult that the hooks read."""

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


def hooked(tracer: Tracer) -> type[Scheduler]:
    """The scheduler as the plugin leaves it."""

    class Hooked(Scheduler):
        run_batch = tracer.run_batch(Scheduler.run_batch)
        process_batch_result_decode = tracer.decode(Scheduler.process_batch_result_decode)
        process_batch_result_prefill = tracer.other(Scheduler.process_batch_result_prefill)

    return Hooked


def tracer(directory: Path) -> Tracer:
    """A tracer that has started."""
    made = Tracer(directory, Proof({}, {}, None, override=True, sha=""))
    facts = {
        **made.proof.facts(),
        "sglang": None,
        "ranks": {},
        "modes": {str(int(mode)): mode.name for mode in ForwardMode},
        "server_args": {},
        "server_args_sha256": "",
    }
    made.recorder = made.sink = Recorder(directory, facts)
    return made


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


@dataclass(frozen=True)
class Cost:
    """One run at one batch size."""

    us: float
    cpu_us: float
    p999_us: float
    bytes_per_row: float
    rows_per_s: float
    calibrations_us: list[float]


@dataclass(frozen=True)
class Block:
    """Some iterations: nanoseconds of each, and CPU of the process a iteration."""

    taken: list[int]
    cpu_ns: float

    @property
    def mean_ns(self) -> float:
        return statistics.fmean(self.taken)


def blocks(scheduler: Scheduler) -> Iterator[Block]:
    """Block after block of one long service."""
    size = BLOCK[scheduler.batch_size]
    served = iterations(scheduler)
    for _ in range(BLOCKS):
        cpu = time.process_time_ns()
        taken = [next(served) for _ in range(size)]
        yield Block(taken, (time.process_time_ns() - cpu) / size)


def measure(batch_size: int) -> Cost:
    """Both ways in turns, then the trace read back."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as store:
        traced = tracer(Path(folder))
        plain, scheduler = Scheduler(batch_size), hooked(traced)(batch_size)
        calibrations_us: list[float] = []
        pairs = []
        for pair in zip(blocks(plain), blocks(scheduler), strict=True):
            pairs.append(pair)
            calibrations_us.append(calibration_us())
        end(traced, scheduler)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        rows = ingested(Path(folder), Path(store) / "warm.duckdb")  # caches and memory
        start = time.perf_counter()
        ingested(Path(folder), Path(store) / "timed.duckdb")
        elapsed = time.perf_counter() - start
    usual = statistics.median(ns for without, _ in pairs for ns in without.taken)
    slowest = sorted(ns for _, with_hooks in pairs for ns in with_hooks.taken)
    return Cost(
        us=statistics.median(b.mean_ns - a.mean_ns for a, b in pairs) / 1e3,
        cpu_us=statistics.median(b.cpu_ns - a.cpu_ns for a, b in pairs) / 1e3,
        p999_us=(slowest[int(0.999 * len(slowest))] - usual) / 1e3,
        bytes_per_row=size / rows,
        rows_per_s=rows / elapsed,
        calibrations_us=calibrations_us,
    )


def ingested(folder: Path, run_file: Path) -> int:
    """Rows of a trace that were read into a new run file, as a run does it."""
    create_run(run_file, HEADER)
    trace = read_trace(folder, launch=0)
    add_repetition(run_file, Cell(0, 0, 1, 0), Repetition(0, 0, Phase.TIMED, "", 0, 1), [], trace)
    return len(trace.rounds)


def calibration_us() -> float:
    """Time of a fixed loop of plain Python."""
    start = time.perf_counter_ns()
    total = 0
    for number in range(CALIBRATION):
        total += number & 3
    return (time.perf_counter_ns() - start) / 1e3


def end(traced: Tracer, scheduler: Scheduler) -> None:
    """End the recording, which must be complete."""
    recorder = traced.recorder
    if recorder is None or recorder.stopped is not None or recorder.iterations != scheduler.forward_ct:
        raise SystemExit(f"the recorder did not record: {traced.status()}")
    recorder.end(iteration=scheduler.forward_ct)


def main() -> None:
    gc.disable()  # its pauses belong to the thousands of requests that are kept here
    costs = {size: [measure(size) for _ in range(RUNS)] for size in BLOCK}

    calibrations = [us for runs in costs.values() for cost in runs for us in cost.calibrations_us]

    def median(batch_size: int, name: str) -> float:
        return float(statistics.median(getattr(cost, name) for cost in costs[batch_size]))

    print(
        json.dumps(
            {
                **{f"us_per_iteration_b{size}": round(median(size, "us"), 2) for size in BLOCK},
                **{f"cpu_us_per_iteration_b{size}": round(median(size, "cpu_us"), 2) for size in BLOCK},
                "calibration_us": round(statistics.median(calibrations), 1),
                "calibration_fastest_us": round(min(calibrations), 1),
                "p999_us": round(median(32, "p999_us"), 1),
                **{f"bytes_per_row_b{size}": round(median(size, "bytes_per_row"), 1) for size in (1, 32)},
                **{f"read_rows_per_s_b{size}": round(median(size, "rows_per_s")) for size in BLOCK},
            }
        )
    )


if __name__ == "__main__":
    main()
