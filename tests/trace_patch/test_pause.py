"""The control file pauses and resumes at idle, and what was not recorded on purpose is not lost."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from kit.importers.trace import read_recording
from tests.trace_patch.conftest import Toy
from tests.trace_patch.worlds import served, status


def control(traced: Toy, word: str) -> None:
    (traced.directory / "control").write_text(word)


def serve(traced: Toy, scheduler: Any, rid: str) -> None:
    """One request to its end, without the event loop, whose end would be the trace's."""
    scheduler.waiting_queue = [traced.batch.Req(rid)]
    scheduler.event_loop_normal()
    scheduler.gracefully_exit = False


def test_a_pause_leaves_a_gap_that_is_not_a_loss(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(overlap=False)
    scheduler.get_init_info()
    serve(traced, scheduler, "before")
    recorded = scheduler.forward_ct
    control(traced, "off")
    scheduler.on_idle()
    assert (status(scheduler)["enabled"], status(scheduler)["control"]) == (False, "off")
    serve(traced, scheduler, "unseen")
    paused = scheduler.forward_ct
    control(traced, "on")
    scheduler.on_idle()
    assert status(scheduler)["enabled"] is True
    serve(traced, scheduler, "after")
    scheduler.run_event_loop()
    recording = read_recording(traced.directory)
    assert recording.rids == ("before", "after")
    assert (recording.lost, recording.faults) == (0, ())
    assert recording.steps.number.tolist() == [
        *range(1, recorded + 1),
        *range(paused + 1, scheduler.forward_ct + 1),
    ]
    decodes = recording.trace(launch=0).iterations.number
    assert decodes.tolist() == list(range(len(decodes)))


def test_a_pause_waits_until_nothing_runs(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler()
    scheduler.get_init_info()
    control(traced, "off")
    scheduler.waiting_queue = [traced.batch.Req("a")]
    scheduler.on_idle()
    assert status(scheduler)["enabled"] is True
    scheduler.waiting_queue = []
    scheduler.on_idle()
    assert status(scheduler)["enabled"] is False


def test_a_server_may_start_paused(traced: Toy) -> None:
    traced.directory.mkdir(exist_ok=True)
    control(traced, "off")
    scheduler = traced.scheduler.Scheduler()
    recording = served(traced, scheduler, [traced.batch.Req("a")])
    assert (len(recording.steps), recording.lost, recording.ended) == (0, 0, True)


def test_without_the_control_file_recording_goes_on(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler()
    scheduler.get_init_info()
    control(traced, "off")
    scheduler.on_idle()
    (traced.directory / "control").unlink()
    scheduler.on_idle()
    assert (status(scheduler)["enabled"], status(scheduler)["control"]) == (True, "on")


def test_an_unknown_word_changes_nothing_and_is_shown(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler()
    scheduler.get_init_info()
    control(traced, "of")
    scheduler.on_idle()
    assert (status(scheduler)["enabled"], status(scheduler)["control"]) == (True, "of")


def test_a_flush_obeys_first_and_leaves_a_mark(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(overlap=False)
    scheduler.get_init_info()
    serve(traced, scheduler, "a")
    assert scheduler.flush_cache()
    control(traced, "off")
    assert scheduler.flush_cache()
    scheduler.run_event_loop()
    events = read_recording(traced.directory).events
    assert [(e["event"], e["iteration"]) for e in events] == [
        ("start", 0),
        ("flush", scheduler.forward_ct),
        ("pause", scheduler.forward_ct),
        ("end", scheduler.forward_ct),
    ]


def test_idling_lets_go_of_finished_requests(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(overlap=False)
    scheduler.get_init_info()
    request = traced.batch.Req("a")
    gone = weakref.ref(request)
    scheduler.waiting_queue = [request]
    del request
    scheduler.event_loop_normal()
    gc.collect()
    assert gone() is None
