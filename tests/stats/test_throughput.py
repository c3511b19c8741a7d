"""The steady window: what it counts and when it refuses."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import StatsError, mser5, throughput_window, window


def closed_loop(*, concurrency: int, waves: int, gap_s: float = 0.0) -> tuple[list[float], list[float]]:
    """Workers that each send a request of one to two seconds when the last one ended."""
    starts, ends = [], []
    for worker in range(concurrency):
        now = 0.01 * worker
        for wave in range(waves):
            starts.append(now)
            now += 1 + (worker * 7 + wave * 3) % 10 / 10
            ends.append(now)
            now += gap_s
    return starts, ends


def test_a_held_level_counts_its_tokens_over_the_window() -> None:
    starts, ends = closed_loop(concurrency=4, waves=5)
    times = np.arange(0.05, 12, 0.1)
    measured = throughput_window(
        starts, ends=ends, token_times=times, token_counts=np.full(len(times), 3), concurrency=4
    )
    assert measured.start_s == pytest.approx(0.03)
    assert measured.full_share == pytest.approx(1.0)
    assert measured.completions >= 8
    assert measured.throughput.point == pytest.approx(30, rel=0.03)
    assert measured.throughput.interval is None and measured.throughput.reason == "one launch carries no interval"


def test_client_gaps_refuse_the_level() -> None:
    starts, ends = closed_loop(concurrency=4, waves=5, gap_s=0.2)
    measured = throughput_window(starts, ends=ends, token_times=[], token_counts=[], concurrency=4)
    assert measured.throughput.point is None
    assert "client gaps" in (measured.throughput.reason or "")


def test_too_few_completions_and_an_unreached_level_refuse() -> None:
    starts, ends = closed_loop(concurrency=4, waves=2)
    few = throughput_window(starts, ends=ends, token_times=[1.0], token_counts=[5], concurrency=4)
    assert few.throughput.reason == f"{few.completions} completions in the window, fewer than 8: send more waves"
    never = throughput_window(starts, ends=ends, token_times=[], token_counts=[], concurrency=5)
    assert never.start_s is None and never.throughput.reason == "concurrency 5 was never reached"
    nothing = throughput_window([], ends=[], token_times=[], token_counts=[], concurrency=1)
    assert nothing.throughput.point is None


def test_clocks_that_run_backwards_are_refused() -> None:
    with pytest.raises(StatsError, match="ends before it starts"):
        window([[2.0, 1.0]], tokens=[], C=1)


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=20)


@given(spans, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_requests_and_stamps_changes_nothing(
    requests: list[tuple[int, int]], C: int, random: Random
) -> None:
    inflight = [[float(start), float(start + length)] for start, length in requests]
    stamps = [[float(end), 3.0] for _, end in inflight]
    first = window(inflight, tokens=stamps, C=C)
    random.shuffle(inflight)
    random.shuffle(stamps)
    assert window(inflight, tokens=stamps, C=C) == first


@given(spans, st.integers(1, 4))
def test_shifting_the_clock_shifts_the_window_and_keeps_the_rate(requests: list[tuple[int, int]], C: int) -> None:
    inflight = [[float(start), float(start + length)] for start, length in requests]
    stamps = [[float(end), 2.0] for _, end in inflight]
    first = window(inflight, tokens=stamps, C=C)
    later = window([[s + 64, e + 64] for s, e in inflight], tokens=[[t + 64, n] for t, n in stamps], C=C)
    assert later["tok_s"] == first["tok_s"] and later["tokens"] == first["tokens"]
    assert (later["t0"] is None) is (first["t0"] is None)


def test_mser_deletes_the_ramp_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    steady = 100 + rng.normal(0, 1, 60)
    ramp = np.linspace(10, 90, 15)
    assert mser5(np.concatenate([ramp, steady])) == 15
    assert mser5(np.full(40, 7.0)) == 0
    assert mser5([1.0, 2.0]) is None
