"""One cell at a time: throughput, latencies, failures, achieved concurrency, from the client's own stamps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kit.analysis.index import Index
from kit.analysis.results import CellResult, ClassSpeed, Distribution, OutcomeCount, WindowSpan
from kit.records import Cell, Outcome, Repetition, RequestRecord
from kit.stats import Estimate, SteadyWindow, throughput_window
from kit.units import NS_PER_S, Seconds, Tokens

__all__ = ["cell_results", "full_run_throughput"]

Floats = npt.NDArray[np.float64]

FULL_RUN = "output tokens / (last end - first send)"
LITTLE = "Little's law"
NO_CLOCK = "the client kept no times"
NO_CHUNKS = "the client kept no chunk times"
ONE_LAUNCH = "one launch carries no interval"


@dataclass(frozen=True, slots=True)
class _Pass:
    """One timed repetition and its requests. `clocked` is false where the source kept no times."""

    repetition: Repetition
    requests: tuple[RequestRecord, ...]

    @property
    def clocked(self) -> bool:
        return any(request.ended_ns > request.sent_ns for request in self.requests)

    @property
    def streamed(self) -> bool:
        """Whether every request that succeeded has its chunks."""
        return all(len(request.chunk_ns) for request in self.requests if request.outcome is Outcome.OK)

    @property
    def duration_s(self) -> Seconds:
        begin = min(request.sent_ns for request in self.requests)
        return (max(request.ended_ns for request in self.requests) - begin) / NS_PER_S


def cell_results(index: Index) -> tuple[CellResult, ...]:
    """Every cell of the run that has a timed repetition, in the order in which they were measured."""
    by_repetition: dict[int, list[RequestRecord]] = {}
    for record in index.requests.records:
        by_repetition.setdefault(record.repetition, []).append(record)
    results = []
    for cell in index.facts.cells:
        passes = [
            _Pass(repetition, tuple(by_repetition[repetition.repetition]))
            for repetition in index.timed[cell.cell]
            if repetition.repetition in by_repetition
        ]
        if passes:
            results.append(_cell_result(index, cell, passes))
    return tuple(results)


def full_run_throughput(repetition: Repetition, requests: Sequence[RequestRecord]) -> Estimate:
    """Output tokens over the time from the first send to the last end of one pass."""
    one = _Pass(repetition, tuple(requests))
    return _full_run([one], clocked=one.clocked)


def _cell_result(index: Index, cell: Cell, passes: Sequence[_Pass]) -> CellResult:
    launch = index.launches[cell.launch]
    requests = [request for one in passes for request in one.requests]
    succeeded = [request for request in requests if request.outcome is Outcome.OK]
    counted = Counter(request.outcome for request in requests)
    window, throughput = _window(passes, cell.concurrency)
    clocked = all(one.clocked for one in passes)
    return CellResult(
        cell=cell.cell,
        launch=cell.launch,
        block=launch.block,
        arm=launch.arm,
        role=launch.role,
        concurrency=cell.concurrency,
        requests=len(requests),
        waves=len(requests) / cell.concurrency,
        outcomes=tuple(OutcomeCount(outcome, counted[outcome]) for outcome in Outcome if counted[outcome]),
        failed=len(requests) - len(succeeded),
        output_tokens=_tokens(succeeded),
        throughput_window=throughput,
        throughput_full_run=_full_run(passes, clocked=clocked),
        window=window,
        achieved_concurrency=_achieved(passes, clocked=clocked),
        ttft_s=_distribution(_ttft(succeeded), NO_CHUNKS),
        tpot_s=_distribution(_tpot(succeeded), NO_CHUNKS),
        e2e_latency_s=_distribution(_e2e(succeeded) if clocked else [], NO_CLOCK),
        chunk_gap_s=_distribution(_gaps(succeeded), NO_CHUNKS),
        classes=tuple(_class_speeds(succeeded)) if clocked else (),
    )


def _class_speeds(requests: Sequence[RequestRecord]) -> Iterator[ClassSpeed]:
    """Each workload class in the order of its name, if its requests took time and gave tokens."""
    by_class: dict[str, list[RequestRecord]] = {}
    for request in requests:
        by_class.setdefault(request.prompt_class, []).append(request)
    for name in sorted(by_class):
        mine = by_class[name]
        busy, tokens = sum(request.ended_ns - request.sent_ns for request in mine), _tokens(mine)
        if busy > 0 and tokens:
            yield ClassSpeed(name, len(mine), tokens * NS_PER_S / busy)


def _tokens(requests: Iterable[RequestRecord]) -> Tokens:
    return sum(request.completion_tokens or 0 for request in requests)


def _full_run(passes: Sequence[_Pass], *, clocked: bool) -> Estimate:
    duration = sum(one.duration_s for one in passes)
    if not clocked or duration <= 0:
        return Estimate.missing(NO_CLOCK, method=FULL_RUN)
    tokens = _tokens(r for one in passes for r in one.requests if r.outcome is Outcome.OK)
    if not tokens:
        return Estimate.missing("no request succeeded", method=FULL_RUN)
    return Estimate.bare(tokens / duration, n=1, method=FULL_RUN, reason=ONE_LAUNCH)


def _achieved(passes: Sequence[_Pass], *, clocked: bool) -> Estimate:
    duration = sum(one.duration_s for one in passes)
    if not clocked or duration <= 0:
        return Estimate.missing(NO_CLOCK, method=LITTLE)
    busy = sum(request.ended_ns - request.sent_ns for one in passes for request in one.requests) / NS_PER_S
    return Estimate.bare(busy / duration, n=1, method=LITTLE, reason=ONE_LAUNCH)


def _window(passes: Sequence[_Pass], concurrency: int) -> tuple[WindowSpan | None, Estimate]:
    """Window of the cell: that of its pass, or all windows of its passes together; refused when one of them is."""
    if not all(one.clocked for one in passes):
        return None, Estimate.missing(NO_CLOCK, method="steady window")
    if not all(one.streamed for one in passes):
        return None, Estimate.missing(NO_CHUNKS, method="steady window")
    windows = [_steady(one, concurrency) for one in passes]
    first = _span(windows[0])
    refused = next((window.throughput for window in windows if window.throughput.point is None), None)
    if refused is not None or len(windows) == 1:
        return first, refused or windows[0].throughput
    seconds = sum((window.end_s or 0.0) - (window.start_s or 0.0) for window in windows)
    tokens = sum(window.tokens for window in windows)
    return first, Estimate.bare(tokens / seconds, n=1, method="steady windows of all passes", reason=ONE_LAUNCH)


def _steady(one: _Pass, concurrency: int) -> SteadyWindow:
    """Seconds count from the start of the repetition; failed requests are in flight like any other."""
    begin = one.repetition.started_ns
    return throughput_window(
        _seconds([request.sent_ns - begin for request in one.requests]),
        ends=_seconds([request.ended_ns - begin for request in one.requests]),
        token_times=_joined([request.chunk_ns - begin for request in one.requests]) / NS_PER_S,
        token_counts=_joined([request.chunk_tokens for request in one.requests]),
        concurrency=concurrency,
    )


def _span(window: SteadyWindow) -> WindowSpan | None:
    if window.start_s is None or window.end_s is None:
        return None
    return WindowSpan(window.start_s, window.end_s, window.tokens, window.completions, window.full_share)


def _ttft(requests: Sequence[RequestRecord]) -> Floats:
    return _seconds([r.first_token_ns - r.sent_ns for r in requests if r.first_token_ns is not None])


def _tpot(requests: Sequence[RequestRecord]) -> Floats:
    """From the first token to the last. An answer that came in one piece, held back by a proxy, has none."""
    timed = [
        (last_ns - request.first_token_ns, tokens - 1)
        for request in requests
        if request.first_token_ns is not None
        and (last_ns := _last_ns(request)) > request.first_token_ns
        and (tokens := request.completion_tokens or 0) > 1
    ]
    spans, steps = np.array(timed, float).reshape(-1, 2).T
    per_token: Floats = spans / NS_PER_S / steps
    return per_token


def _last_ns(request: RequestRecord) -> int:
    return int(request.chunk_ns[-1]) if len(request.chunk_ns) else request.ended_ns


def _e2e(requests: Sequence[RequestRecord]) -> Floats:
    return _seconds([request.ended_ns - request.sent_ns for request in requests])


def _gaps(requests: Sequence[RequestRecord]) -> Floats:
    """Gaps inside requests: differences over all chunks, without those that span two requests."""
    stamps = _joined([request.chunk_ns for request in requests])
    lengths = np.array([len(request.chunk_ns) for request in requests if len(request.chunk_ns)], np.int64)
    inside = np.ones(max(len(stamps) - 1, 0), bool)
    inside[np.cumsum(lengths)[:-1] - 1] = False
    gaps: Floats = np.diff(stamps)[inside] / NS_PER_S
    return gaps


def _distribution(values: npt.ArrayLike, reason: str) -> Distribution:
    data = np.asarray(values, float)
    if not len(data):
        return Distribution(0, reason=reason)
    p50, p90, p99 = np.quantile(data, [0.5, 0.9, 0.99]).tolist()
    return Distribution(len(data), float(data.mean()), p50, p90, p99)


def _seconds(nanoseconds: Sequence[int]) -> Floats:
    seconds: Floats = np.array(nanoseconds, np.int64) / NS_PER_S
    return seconds


def _joined(columns: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *columns])
