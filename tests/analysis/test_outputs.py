"""Outputs are compared token by token, prompt by prompt, within a block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kit.analysis import Losslessness, Pairing, analyse
from kit.records import Outcome, RequestRecord, RunFacts
from tests.builders import build_run, build_spec, edit_requests, shared_run


def compared(facts: RunFacts, arm: str, pairing: Pairing = Pairing.ARM) -> list[Losslessness]:
    return [one for one in analyse(facts).losslessness if one.arm == arm and one.pairing is pairing]


def flip(request: RequestRecord) -> RequestRecord:
    ids = request.output_ids.copy()
    ids[5] = -1
    return replace(request, output_ids=ids)


def test_equal_outputs_are_equal_in_every_block() -> None:
    for one in compared(shared_run(), "eagle3_k3"):
        assert one.equal_ids == one.equal_lengths == one.prompts
        assert one.divergences == ()
        assert len(one.launches) == len(one.reference_launches) == 3
    assert sum(one.prompts for one in compared(shared_run(), "eagle3_k3")) == 3 * (8 + 16)


def test_a_changed_token_is_found_where_it_is() -> None:
    changed = compared(edit_requests(shared_run(), flip, arm="eagle3_k3", first=1), "eagle3_k3")
    assert [(d.index, d.margin, d.rank) for one in changed for d in one.divergences] == [(5, None, None)]
    assert sum(one.prompts - one.equal_ids for one in changed) == 1
    assert all(one.equal_lengths == one.prompts for one in changed)


def test_a_shorter_output_diverges_at_its_end_and_has_another_length() -> None:
    def cut(request: RequestRecord) -> RequestRecord:
        return replace(request, output_ids=request.output_ids[:-4])

    found = compared(edit_requests(shared_run(), cut, arm="eagle3_k1"), "eagle3_k1")
    assert all(one.equal_ids == one.equal_lengths == 0 for one in found)
    divergence = found[0].divergences[0]
    assert divergence.index == divergence.other_tokens == divergence.reference_tokens - 4


def test_a_recorded_margin_is_read_where_outputs_part() -> None:
    def recorded(request: RequestRecord) -> RequestRecord:
        top = [[[-0.2, int(token), None], [-0.7, -1, None]] for token in request.output_ids]
        return replace(request, meta_info={"output_top_logprobs": top})

    facts = edit_requests(edit_requests(shared_run(), flip, arm="eagle3_k3", first=1), recorded, arm="baseline")
    (divergence,) = (d for one in compared(facts, "eagle3_k3") for d in one.divergences)
    assert divergence.margin == pytest.approx(0.5) and divergence.rank == 2


def test_an_output_that_goes_on_past_the_end_of_the_reference_is_told_from_a_different_one() -> None:
    def stopped(request: RequestRecord) -> RequestRecord:
        return replace(request, output_ids=request.output_ids[:-4], finish_reason="stop")

    ended = edit_requests(shared_run(), stopped, arm="baseline")
    assert all(d.past_the_end for one in compared(ended, "eagle3_k3") for d in one.divergences)
    flipped = compared(edit_requests(ended, flip, arm="eagle3_k3"), "eagle3_k3")
    assert not any(d.past_the_end for one in flipped for d in one.divergences)


def test_the_bound_is_the_one_for_nothing_seen() -> None:
    for one in compared(shared_run(), "eagle3_k1"):
        assert one.diverged_upper == pytest.approx(1 - 0.05 ** (1 / one.prompts))


def test_the_baseline_is_held_against_itself_at_another_concurrency() -> None:
    (control,) = compared(shared_run(), "baseline", Pairing.AA_TOKENS)
    assert (control.concurrency, control.reference_concurrency) == (4, 1)
    assert control.prompts == 3 * 8


def test_a_second_baseline_launch_is_a_control_at_the_same_concurrency() -> None:
    facts = build_run(build_spec(design={"aa_speed": True}))
    same = [
        one for one in compared(facts, "baseline", Pairing.AA_TOKENS) if one.concurrency == one.reference_concurrency
    ]
    assert {one.concurrency for one in same} == {1, 4}
    assert all(set(one.launches).isdisjoint(one.reference_launches) for one in same)


def test_failed_requests_are_not_compared() -> None:
    def fail(request: RequestRecord) -> RequestRecord:
        return replace(request, outcome=Outcome.ABORTED)

    assert compared(edit_requests(shared_run(), fail, arm="eagle3_k1"), "eagle3_k1") == []


def test_outputs_that_nobody_kept_are_not_called_equal() -> None:
    def forget(request: RequestRecord) -> RequestRecord:
        return replace(request, output_ids=np.empty(0, np.int64))

    assert analyse(edit_requests(shared_run(), forget)).losslessness == ()
