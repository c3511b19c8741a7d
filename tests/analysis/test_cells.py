"""One cell: throughput, latency and failures from the client's own stamps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kit.analysis import CellResult, analyse
from kit.records import Outcome, RequestRecord, RunFacts
from tests.builders import build_run, build_spec, edit_requests, shared_run


def cell(facts: RunFacts, arm: str, concurrency: int) -> CellResult:
    return next(c for c in analyse(facts).cells if c.arm == arm and c.concurrency == concurrency)


def test_window_throughput_is_batch_over_iteration_time_where_nothing_else_costs() -> None:
    one = build_run(build_spec(workload={"min_output_tokens": 32, "max_output_tokens": 32}), noise=0.0)
    # four tokens an iteration of 0.010 + 0.0002 x 4 s, and the first token of each request comes without one
    steps = 4 / (0.010 + 0.0008)
    assert cell(one, "baseline", 4).throughput_window.point == pytest.approx(steps * 32 / 31, rel=0.02)


def test_the_full_run_includes_the_ramp() -> None:
    one = cell(shared_run(), "baseline", 4)
    assert one.throughput_full_run.point is not None
    assert one.throughput_window.point is not None
    assert one.throughput_full_run.point < one.throughput_window.point
    assert one.throughput_full_run.interval is None
    assert one.throughput_full_run.reason == "one launch carries no interval"


def test_a_window_needs_every_request_of_the_level_in_flight() -> None:
    one = cell(shared_run(), "baseline", 4)
    assert one.window is not None
    assert one.window.full_share == pytest.approx(1)
    assert one.window.completions >= 8
    assert one.window.end_s > one.window.start_s >= 0


def test_a_cell_with_too_few_waves_is_refused_a_window() -> None:
    one = cell(build_run(build_spec(load={"waves": 1, "min_requests": 1})), "baseline", 4)
    assert one.throughput_window.point is None
    assert "completions in the window" in (one.throughput_window.reason or "")
    assert one.waves == 1


def test_latencies_are_those_of_the_stamps() -> None:
    one = cell(shared_run(), "eagle3_k1", 1)
    assert one.ttft_s.p50 == pytest.approx(0.001)
    assert one.ttft_s.n == one.tpot_s.n == one.e2e_latency_s.n == one.requests
    assert one.chunk_gap_s.n > one.requests


def test_gaps_are_taken_inside_requests_only() -> None:
    def spread(request: RequestRecord) -> RequestRecord:
        stamps = request.sent_ns + 1_000_000 * np.arange(1, 4)
        return replace(request, chunk_ns=stamps, chunk_tokens=np.array([1, 1, (request.completion_tokens or 0) - 2]))

    one = cell(edit_requests(shared_run(), spread), "baseline", 4)
    assert one.chunk_gap_s.n == 2 * one.requests
    assert one.chunk_gap_s.p99 == pytest.approx(0.001)


def test_achieved_concurrency_is_littles_law() -> None:
    assert cell(shared_run(), "baseline", 1).achieved_concurrency.point == pytest.approx(1)
    four = cell(shared_run(), "baseline", 4).achieved_concurrency.point
    assert four is not None
    assert 3.5 < four < 4


def test_failures_are_counted_by_outcome_and_their_tokens_do_not_count() -> None:
    def fail(request: RequestRecord) -> RequestRecord:
        return replace(request, outcome=Outcome.TIMEOUT, completion_tokens=None)

    before = cell(shared_run(), "baseline", 4)
    after = cell(edit_requests(shared_run(), fail, arm="baseline"), "baseline", 4)
    assert after.failed == after.requests == before.requests
    assert [(c.outcome, c.count) for c in after.outcomes] == [(Outcome.TIMEOUT, after.requests)]
    assert after.output_tokens == 0
    assert after.throughput_full_run.reason == "no request succeeded"


def test_a_request_without_chunks_leaves_the_cell_without_a_window() -> None:
    def unstreamed(request: RequestRecord) -> RequestRecord:
        return replace(request, chunk_ns=np.empty(0, np.int64), chunk_tokens=np.empty(0, np.int64))

    facts = edit_requests(shared_run(), unstreamed, arm="baseline", first=1)
    refused = [c for c in analyse(facts).cells if c.throughput_window.point is None]
    assert [c.arm for c in refused] == ["baseline"]


def test_a_run_that_finished_nothing_has_no_cells_and_does_not_break() -> None:
    facts = shared_run()
    empty = replace(facts, repetitions=(), requests=())
    assert analyse(empty).cells == ()
