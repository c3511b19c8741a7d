"""What a served batch leaves in the trace, with and without speculation and overlap."""

from __future__ import annotations

import numpy as np
import pytest

from kit.importers.recording import Recording
from kit.importers.segments import RowFlag
from tests.trace_patch.conftest import Toy
from tests.trace_patch.worlds import handled, served


def rows_of(recording: Recording, number: int) -> list[tuple[str, int, int, int]]:
    """(rid, tokens before, accepted, flags) of one iteration."""
    rows = recording.rows
    here = rows.step == int(np.flatnonzero(recording.steps.number == number)[0])
    columns = (rows.rid[here], rows.tokens_before[here], rows.accepted[here], rows.flags[here])
    return [(recording.rids[r], int(t), int(a), int(f)) for r, t, a, f in zip(*columns, strict=True)]


def test_without_speculation_every_live_row_has_one_token_more_each_round_and_nothing_accepted(traced: Toy) -> None:
    requests = [traced.batch.Req("a", max_new_tokens=3), traced.batch.Req("b", max_new_tokens=4)]
    recording = served(traced, traced.scheduler.Scheduler(overlap=False), requests)
    assert recording.steps.number.tolist() == [1, 2, 3, 4]
    assert rows_of(recording, 2) == [("a", 1, -1, 0), ("b", 1, -1, 0)]
    assert rows_of(recording, 3) == [("a", 2, -1, 0), ("b", 2, -1, 0)]
    assert rows_of(recording, 4) == [("b", 3, -1, 0)]
    assert set(recording.steps.draft_tokens.tolist()) == set(recording.steps.depth.tolist()) == {-1}


def test_a_prefill_is_recorded_with_its_token_counts(traced: Toy) -> None:
    requests = [traced.batch.Req("a", prompt_tokens=11), traced.batch.Req("b", prompt_tokens=31)]
    recording = served(traced, traced.scheduler.Scheduler(), requests)
    steps = recording.steps
    assert recording.header.modes[int(steps.mode[0])] == "EXTEND"
    assert (steps.new_tokens[0], steps.cached_tokens[0], steps.rows[0]) == (42, 0, 2)
    assert not steps.new_tokens[1:].any()


def test_with_overlap_a_finished_request_takes_part_once_more_as_a_ghost(traced: Toy) -> None:
    recording = served(traced, traced.scheduler.Scheduler(), [traced.batch.Req("a", max_new_tokens=2)])
    assert rows_of(recording, 2) == [("a", 1, -1, 0)]
    assert rows_of(recording, 3) == [("a", 2, -1, RowFlag.FINISHED)]
    assert recording.trace(launch=0).rounds.ghost.tolist() == [False, True]


def test_accepted_drafts_and_the_depth_belong_to_the_round_they_were_launched_in(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(depth=3)
    scheduler.controller.decisions = [3, 1, 1, 3]
    requests = [traced.batch.Req(name, max_new_tokens=12) for name in "ab"]
    recording = served(traced, scheduler, requests)
    decodes = recording.steps.mode == recording.header.decode
    depth, drafts = recording.steps.depth[decodes], recording.steps.draft_tokens[decodes]
    # The switch to 1 is decided on the second result, when the third round runs with 3 already.
    assert depth.tolist()[:4] == [3, 3, 3, 1]
    assert (drafts == depth + 1).all()
    rounds = recording.trace(launch=0).rounds
    assert (rounds.accepted <= depth[rounds.iteration]).all()
    assert rounds.accepted[:6].tolist() == [0, 1, 1, 2, 2, 3]


def test_a_switch_of_depth_is_a_record_of_its_own_with_slot_and_average(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(depth=3)
    scheduler.controller.decisions = [3, 1]
    requests = [traced.batch.Req(f"r{i}", max_new_tokens=9) for i in range(9)]
    switches = served(traced, scheduler, requests).trace(launch=0).switches
    assert (switches.before.tolist(), switches.after.tolist()) == ([3], [1])
    assert (switches.slot.tolist(), switches.average.tolist()) == ([8], [1.5])
    # SGLang's third iteration is the second decode.
    assert (switches.number.tolist(), switches.by_result.tolist()) == ([1], [True])


def test_a_policy_without_slots_still_has_its_switches_recorded(traced: Toy) -> None:
    scheduler = traced.scheduler.Scheduler(depth=3)
    scheduler.controller.decisions, scheduler.controller.params = [1], object()
    switches = served(traced, scheduler, [traced.batch.Req("a", max_new_tokens=9)]).trace(launch=0).switches
    assert switches.slot.tolist() == [-1]
    assert np.isnan(switches.average).all()


def test_launch_precedes_ready_and_queue_lengths_are_those_at_launch(traced: Toy) -> None:
    recording = served(traced, traced.scheduler.Scheduler(), [traced.batch.Req(name) for name in "abc"])
    steps = recording.steps
    assert (steps.launch_ns > 0).all()
    assert (steps.launch_ns < steps.ready_ns).all()
    assert (np.diff(steps.ready_ns) > 0).all()
    # With overlap an iteration is launched before the one before it is ready.
    assert (steps.launch_ns[2:] < steps.ready_ns[1:-1]).all()
    assert steps.running.tolist()[:2] == [0, 3]
    assert steps.cuda_graph.all()


def test_retracted_and_chunked_rows_are_marked(traced: Toy) -> None:
    chunked, retracted = traced.batch.Req("chunked"), traced.batch.Req("retracted")
    chunked.inflight_middle_chunks, retracted.is_retracted = 1, True
    batch = traced.batch.ScheduleBatch([chunked, retracted], traced.batch.ForwardMode.EXTEND)
    recording = handled(traced, traced.scheduler.Scheduler(), batch)
    assert [row[3] for row in rows_of(recording, 1)] == [RowFlag.CHUNK, RowFlag.RETRACTED]


def test_decoding_rows_of_a_mixed_batch_are_told_from_prefilling_ones(traced: Toy) -> None:
    reqs = [traced.batch.Req("new"), traced.batch.Req("old")]
    mixed = traced.batch.ForwardMode.MIXED
    batch = traced.batch.ScheduleBatch(reqs, mixed, extend_lens=[5, 1], prefix_lens=[2, 9], decoding_reqs=reqs[1:])
    recording = handled(traced, traced.scheduler.Scheduler(), batch)
    assert [row[3] for row in rows_of(recording, 1)] == [0, RowFlag.DECODING]
    assert (recording.steps.new_tokens[0], recording.steps.cached_tokens[0]) == (6, 11)
    assert len(recording.trace(launch=0).iterations) == 0


def test_an_idle_batch_is_an_iteration_without_rows(traced: Toy) -> None:
    batch = traced.batch.ScheduleBatch([], traced.batch.ForwardMode.IDLE)
    recording = handled(traced, traced.scheduler.Scheduler(), batch)
    assert (recording.steps.number.tolist(), recording.steps.rows.tolist(), recording.lost) == ([1], [0], 0)


def test_the_trace_ends_with_a_clean_end_and_loses_nothing(traced: Toy) -> None:
    recording = served(traced, traced.scheduler.Scheduler(depth=2), [traced.batch.Req("a")])
    assert recording.ended
    assert recording.events[-1]["graceful"] is True
    assert (recording.lost, recording.faults) == (0, ())


def test_the_header_names_plugin_sglang_targets_process_and_settings_but_no_secret(traced: Toy) -> None:
    header = served(traced, traced.scheduler.Scheduler(depth=2), [traced.batch.Req("a")]).header
    assert (header.sglang, header.reviewed_as, header.override) == ("0.0.0.toy", "toy", False)
    assert (header.ranks["tp_rank"], header.modes[2]) == (0, "DECODE")
    assert header.server_args == {"speculative_num_steps": 2, "tp_size": 1}
    assert len(header.plugin_sha256) == len(header.server_args_sha256) == 64
    assert all(len(digest) == 64 for digest in header.targets.values())
    assert b"secret" not in b"".join(path.read_bytes() for path in traced.directory.iterdir())


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("depth", [None, 3])
def test_live_rounds_account_for_every_token(traced: Toy, overlap: bool, depth: int | None) -> None:
    requests = [traced.batch.Req(f"r{i}", max_new_tokens=3 + i) for i in range(6)]
    trace = served(traced, traced.scheduler.Scheduler(overlap=overlap, depth=depth), requests).trace(launch=5)
    live = ~trace.rounds.ghost
    emitted = np.bincount(trace.rounds.rid[live], np.maximum(trace.rounds.accepted[live], 0) + 1)
    first_token = 1
    assert (emitted + first_token).tolist() == [len(req.output_ids) for req in requests]
    assert trace.iterations.number.tolist() == list(range(len(trace.iterations)))
    assert trace.iterations.launch.tolist() == [5] * len(trace.iterations)
