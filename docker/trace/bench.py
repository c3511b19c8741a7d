"""What the trace costs and how fast it reads back: one JSON line, every number the median of five runs.

    python docker/trace/bench.py

Imitates what the hooks see: requests with as many attributes as SGLang's, which are prefilled, decode for
some rounds and give way to others, and functions wrapped as the plugin does it. Iterations
are decodes of the whole batch and prefills of those who are new in it. A cost is the difference between iterations
with hooks and the same without, taken in turns in blocks of some hundred; a run's figure is the median of its
blocks' means, because on a shared host a block in which the process was suspended says nothing about the hooks.
`cpu_us_...` is process CPU instead of time, which a busy host disturbs least. Between the blocks a loop of plain
Python is timed: `calibration_us` tells how slow the host was, and `calibration_fastest_us` how fast it can be;
`us_per_iteration_b..._at_400_us_calibration` is the cost scaled to a host that needs 400 us for the loop, the figure to
compare between hosts and days. Reading is timed in three: files to columns (`parse`), columns into DuckDB's memory with
the requests' names (`duckdb`), and all the way into a compressed run file (`stored`).
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from imitation import ForwardMode, Scheduler, iterations
from speckit_trace.hooks import Tracer
from speckit_trace.recorder import Recorder
from speckit_trace.targets import Proof

from kit.importers.trace import read_trace
from kit.records import Cell, Origin, Phase, Repetition, RunHeader, Trace
from kit.store import add_repetition, create_run

RUNS = 5
BLOCKS = 40
BLOCK = {1: 1500, 32: 500, 256: 100}  # iterations
READ_ROWS = 1_000_000  # at least
REFERENCE_US = 400  # of the calibration loop, for the scaled figures
CALIBRATION = 10_000  # passes of a loop
HEADER = RunHeader("bench", Origin.SIMULATED, "bench", "{}", "", "", 1, "", "", {})


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


@dataclass(frozen=True)
class Cost:
    """One run at one batch size."""

    us: float
    cpu_us: float
    p999_us: float
    bytes_per_row: float
    calibrations_us: list[float]

    @property
    def scaled_us(self) -> float:
        """The cost on a host whose calibration loop takes the reference time."""
        return self.us * REFERENCE_US / statistics.median(self.calibrations_us)


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
    with tempfile.TemporaryDirectory() as folder:
        traced = tracer(Path(folder))
        plain, scheduler = Scheduler(batch_size), hooked(traced)(batch_size)
        calibrations_us: list[float] = []
        pairs = []
        for pair in zip(blocks(plain), blocks(scheduler), strict=True):
            pairs.append(pair)
            calibrations_us.append(calibration_us())
        end(traced, scheduler)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        rows = len(read_decodes(Path(folder)).rounds)
    usual = statistics.median(ns for without, _ in pairs for ns in without.taken)
    slowest = sorted(ns for _, with_hooks in pairs for ns in with_hooks.taken)
    return Cost(
        us=statistics.median(b.mean_ns - a.mean_ns for a, b in pairs) / 1e3,
        cpu_us=statistics.median(b.cpu_ns - a.cpu_ns for a, b in pairs) / 1e3,
        p999_us=(slowest[int(0.999 * len(slowest))] - usual) / 1e3,
        bytes_per_row=size / rows,
        calibrations_us=calibrations_us,
    )


def read_back(batch_size: int) -> dict[str, float]:
    """Rows a second, by how far they are taken, of a trace of some length; medians."""
    with tempfile.TemporaryDirectory() as folder:
        traced = tracer(Path(folder))
        scheduler = hooked(traced)(batch_size)
        served = iterations(scheduler)
        while scheduler.forward_ct * batch_size < READ_ROWS:
            next(served)
        end(traced, scheduler)
        runs = [read_once(Path(folder)) for _ in range(RUNS + 1)][1:]  # the first fills caches
    return {f"{step}_rows_per_s_b{batch_size}": round(statistics.median(run[step] for run in runs)) for step in runs[0]}


def read_once(folder: Path) -> dict[str, float]:
    """Rows a second."""
    with tempfile.TemporaryDirectory() as store:
        trace, parse_s = timed(read_decodes, folder)
        _, duckdb_s = timed(inserted, Path(":memory:"), trace)
        create_run(run_file := Path(store) / "run.duckdb", HEADER)
        _, insert_s = timed(inserted, run_file, trace)
    rows = len(trace.rounds)
    return {"parse": rows / parse_s, "duckdb": rows / (parse_s + duckdb_s), "stored": rows / (parse_s + insert_s)}


def read_decodes(folder: Path) -> Trace:
    """A trace as columns."""
    return read_trace(folder, launch=0)


def inserted(run_file: Path, trace: Trace) -> None:
    """Store a trace as a run does."""
    add_repetition(run_file, Cell(0, 0, 1, 0), Repetition(0, 0, Phase.TIMED, "", 0, 1), [], trace)


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What a call returns, and the seconds it took."""
    start = time.perf_counter()
    returned = function(*arguments)
    return returned, time.perf_counter() - start


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
                **{
                    f"us_per_iteration_b{size}_at_{REFERENCE_US}_us_calibration": round(median(size, "scaled_us"), 2)
                    for size in BLOCK
                },
                "calibration_us": round(statistics.median(calibrations), 1),
                "calibration_fastest_us": round(min(calibrations), 1),
                "p999_us": round(median(32, "p999_us"), 1),
                **{f"bytes_per_row_b{size}": round(median(size, "bytes_per_row"), 1) for size in (1, 32)},
                **{name: rate for size in BLOCK for name, rate in read_back(size).items()},
            }
        )
    )


if __name__ == "__main__":
    main()
