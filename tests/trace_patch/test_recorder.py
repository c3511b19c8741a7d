"""The recorder on its own: names, sizes, segments, and how it stops."""

from __future__ import annotations

import gc
import resource
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from speckit_trace.layout import MAX_REQUESTS

from kit.importers.trace import read_recording, read_trace
from tests.trace_patch.conftest import Toy
from tests.trace_patch.worlds import status
from tests.trace_patch.written import Recorder, Req, decode, prefill, recorder


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Stops files of this process from growing beyond 1 KiB; what is already allocated can be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(writer: Recorder, *, batch_size: int, iterations: int) -> None:
    reqs = [Req(f"{row:032x}") for row in range(batch_size)]
    for number in range(1, iterations + 1):
        decode(writer, number, reqs, [1] * batch_size)


@pytest.mark.parametrize(("batch_size", "most"), [(1, 48), (32, 16), (256, 9)])
def test_a_row_takes_few_bytes(tmp_path: Path, batch_size: int, most: int) -> None:
    writer = recorder(tmp_path)
    iterations = 20_000 // batch_size
    fill(writer, batch_size=batch_size, iterations=iterations)
    writer.end(iteration=iterations)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size / (batch_size * iterations) <= most


def test_any_text_can_name_a_request(tmp_path: Path) -> None:
    names = ["", "a", "ünïcode-日本語-🙂", "x" * 5000, "line\nbreak"]
    writer = recorder(tmp_path)
    decode(writer, 1, [Req(name) for name in names])
    writer.end(iteration=1)
    assert read_recording(tmp_path).rids == tuple(names)


def test_what_cannot_stand_in_a_name_is_escaped(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    decode(writer, 1, [Req("\ud800"), Req("nul\0nul"), Req("plain")])
    writer.end(iteration=1)
    assert read_recording(tmp_path).rids == ("\\ud800", "nul\\0nul", "plain")


def test_ten_thousand_rows_are_one_iteration(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    reqs = [Req(f"{row:032x}", tokens=row % 7) for row in range(10_000)]
    for number in (1, 2):
        decode(writer, number, reqs, [row % 4 for row in range(10_000)])
    writer.end(iteration=2)
    trace = read_trace(tmp_path, launch=0)
    assert trace.iterations.batch_size.tolist() == [10_000, 10_000]
    assert np.array_equal(trace.rounds.accepted[10_000:], np.arange(10_000) % 4)
    assert np.array_equal(trace.rounds.tokens_before[:10_000], np.arange(10_000) % 7)
    assert trace.lost == 0


def test_a_batch_larger_than_a_segment_gets_a_larger_segment(tmp_path: Path) -> None:
    writer = recorder(tmp_path, segment_bytes=8192)
    for number, size in enumerate((3, 1000, 2), start=1):
        decode(writer, number, [Req(f"{number}-{row}") for row in range(size)])
    writer.end(iteration=3)
    assert read_trace(tmp_path, launch=0).iterations.batch_size.tolist() == [3, 1000, 2]


def test_more_requests_than_a_segment_can_number_begin_a_new_one(tmp_path: Path) -> None:
    writer = recorder(tmp_path, segment_bytes=8 << 20)
    count = MAX_REQUESTS + 10
    for number, first in enumerate(range(0, count, 1000), start=1):
        decode(writer, number, [Req(str(rid)) for rid in range(first, min(first + 1000, count))])
    writer.end(iteration=number)
    recording = read_recording(tmp_path)
    assert recording.rids == tuple(map(str, range(count)))
    assert np.array_equal(recording.rows.rid, np.arange(count))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_request_keeps_its_identity_across_segments(tmp_path: Path) -> None:
    writer = recorder(tmp_path, segment_bytes=4096)
    reqs = [Req("a"), Req("b")]
    for number in range(1, 400):
        decode(writer, number, reqs if number % 3 else reqs[:1])
    writer.end(iteration=399)
    recording = read_recording(tmp_path)
    assert len(list(tmp_path.iterdir())) > 3
    assert recording.rids == ("a", "b")
    assert recording.lost == 0
    assert np.bincount(recording.rows.rid).tolist() == [399, 266]


def test_two_rows_of_one_name_do_not_shift_the_names_after_them(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    decode(writer, 1, [Req("twice"), Req("twice"), Req("once")])
    decode(writer, 2, [Req("new")])
    writer.end(iteration=2)
    recording = read_recording(tmp_path)
    assert [recording.rids[rid] for rid in recording.rows.rid] == ["twice", "twice", "once", "new"]


def test_a_row_that_becomes_special_is_marked_and_the_next_rounds_are_not(tmp_path: Path) -> None:
    writer, reqs = recorder(tmp_path), [Req("a"), Req("b"), Req("c")]
    for number in range(1, 7):
        reqs[1].finished_reason = "stop" if number == 3 else None
        reqs[2].is_retracted = number == 5
        decode(writer, number, reqs, [1, 2, 3])
    alone = Req("d", finished_reason="stop")
    decode(writer, 7, [alone], [0])
    writer.end(iteration=7)
    rows = read_recording(tmp_path).rows
    assert rows.flags.tolist() == [*[0] * 6, 0, 1, 0, *[0] * 3, 0, 0, 2, *[0] * 3, 1]
    assert rows.accepted.tolist() == [1, 2, 3] * 6 + [0]


@pytest.mark.parametrize(("event", "counts"), [(False, [40, 1000]), (True, [8, 800])])
def test_after_another_record_the_batch_is_named_again(tmp_path: Path, event: bool, counts: list[int]) -> None:
    """Rounds of the same requests refer to the one before, but never across segments."""
    batch_size, rounds = counts
    writer = recorder(tmp_path, segment_bytes=6000)
    reqs = [Req(f"r{row}") for row in range(batch_size)]
    for number in range(1, rounds + 1):
        decode(writer, number, reqs, [number % 5] * batch_size)
        if event:
            writer.event("flush", iteration=number)
    writer.end(iteration=rounds)
    trace = read_trace(tmp_path, launch=0)
    assert len(list(tmp_path.iterdir())) > 5
    assert trace.lost == 0
    assert np.array_equal(trace.rounds.accepted, np.repeat(np.arange(1, rounds + 1) % 5, batch_size))
    assert np.array_equal(trace.rounds.rid, np.tile(np.arange(batch_size), rounds))


def test_an_empty_batch_that_begins_a_segment_names_nobody(tmp_path: Path) -> None:
    writer = recorder(tmp_path, segment_bytes=3000)
    for number in range(1, 200):
        decode(writer, number, [])
    decode(writer, 200, [Req("a")])
    writer.end(iteration=200)
    recording = read_recording(tmp_path)
    assert len(list(tmp_path.iterdir())) > 2
    assert (recording.rids, recording.rows.rid.tolist()) == (("a",), [0])


def test_a_list_that_sglang_extends_in_place_is_noticed(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    reqs = [Req("a")]
    decode(writer, 1, reqs)
    reqs.append(Req("b"))
    decode(writer, 2, reqs)
    writer.end(iteration=2)
    assert read_trace(tmp_path, launch=0).iterations.batch_size.tolist() == [1, 2]


def test_a_request_that_gets_a_new_list_of_tokens_is_read_from_the_new_one(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    request = Req("a", tokens=5)
    decode(writer, 1, [request])
    request.output_ids = request.output_ids[:2]
    prefill(writer, 2, [request], [3], [0])
    decode(writer, 3, [request])
    writer.end(iteration=3)
    assert read_recording(tmp_path).rows.tokens_before.tolist() == [5, 2, 2]


def test_what_does_not_fit_the_format_stops_the_recording_and_never_raises(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    decode(writer, 1, [Req("a")], [3])
    decode(writer, 2, [Req("a")], [256])
    decode(writer, 3, [Req("a")], [3])
    assert (writer.iterations, writer.dropped) == (1, 2)
    recording = read_recording(tmp_path)
    assert recording.steps.number.tolist() == [1]
    assert recording.lost == 2
    assert recording.faults == (f"the recording stopped: {writer.stopped}",)
    assert not recording.ended


def test_counts_that_do_not_match_the_rows_stop_the_recording(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    decode(writer, 1, [Req("a"), Req("b")], [1])
    assert writer.stopped == "ValueError: 1 accepted counts for 2 requests"
    assert read_recording(tmp_path).lost == 1


def test_a_stopped_recording_lets_go_of_requests(tmp_path: Path) -> None:
    writer = recorder(tmp_path)
    request = Req("a")
    gone = weakref.ref(request)
    decode(writer, 1, [request], [300])
    assert writer.stopped is not None
    del request
    gc.collect()
    assert gone() is None


def test_a_disk_that_fills_up_stops_the_recording_and_keeps_what_was_recorded(tmp_path: Path, full_disk: None) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    writer = recorder(tmp_path, segment_bytes=8192)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    fill(writer, batch_size=4, iterations=500)
    assert writer.stopped is not None
    assert writer.iterations + writer.dropped == 500
    recording = read_recording(tmp_path)
    assert recording.steps.number.tolist() == list(range(1, writer.iterations + 1))
    assert recording.lost == writer.dropped
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [8192]


def test_a_stopped_recording_does_not_stop_the_scheduler(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(depth=3)
    scheduler.get_init_info()
    request = traced.batch.Req("a", max_new_tokens=9)
    request.output_ids = None
    batch = traced.batch.ScheduleBatch([request], traced.batch.ForwardMode.IDLE)
    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
    scheduler.waiting_queue = [traced.batch.Req("b", max_new_tokens=9)]
    scheduler.run_event_loop()
    shown = status(scheduler)
    assert (shown["enabled"], shown["records"], shown["dropped"]) == (False, 0, scheduler.forward_ct)
    assert shown["stopped"].startswith("TypeError")
    assert scheduler.running_batch.reqs == []
