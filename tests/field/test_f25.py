"""A repetition loop is drafted perfectly, so the broken arm looks fastest: text is looked at before speed is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.checks import CellState, Code, Severity
from kit.records import RequestRecord, RunFacts
from kit.stats import closing_cycle
from kit.verdict import judge
from tests.builders import edit_requests, shared_run
from tests.field.inputs import rows

OUTPUTS = {row["arm"]: row for row in rows("F25", "outputs.jsonl")}
GOOD, LOOP = OUTPUTS["target_a"]["output_ids"], OUTPUTS["target_b"]["output_ids"]


def writing(ids: list[int], *, arms: tuple[str, ...], first: int | None = None) -> RunFacts:
    """A sound run in which these arms wrote this text for every prompt, cut to the length asked for."""

    def change(request: RequestRecord) -> RequestRecord:
        wanted = request.completion_tokens or 0
        return replace(request, output_ids=np.resize(np.array(ids), wanted))

    facts = shared_run()
    for arm in arms:
        facts = edit_requests(facts, change, arm=arm, first=first)
    return facts


def test_the_figures_of_the_case() -> None:
    lengths = {arm: row["completion_tokens"] / row["spec_verify_ct"] for arm, row in OUTPUTS.items()}
    assert lengths == {"target_a": pytest.approx(2.64, abs=5e-3), "target_b": pytest.approx(7.03, abs=5e-3)}
    good, loop = closing_cycle(GOOD), closing_cycle(LOOP)
    assert (good.distinct, good.total, good.tokens) == (234, 240, 0)
    assert (loop.distinct, loop.total, loop.period, loop.tokens) == (2, 900, 2, 900)


def test_an_arm_that_loops_where_the_baseline_does_not_is_void() -> None:
    verdict = judge(writing(LOOP, arms=("eagle3_k3",)))
    assert {one.state for one in verdict.doubts.cells if one.arm == "eagle3_k3"} == {CellState.INVALID}
    (doubt,) = (one for one in verdict.doubts.doubts if one.code is Code.LOOPING_OUTPUTS)
    assert (doubt.arm, doubt.severity) == ("eagle3_k3", Severity.INVALID)
    assert "a cycle of 2 tokens" in doubt.message
    words = {one.word.value for one in verdict.speed.comparisons if one.comparison.arm == "eagle3_k3"}
    assert words == {"inconclusive"}


def test_a_loop_of_the_baseline_too_is_of_target_or_prompts() -> None:
    doubts = judge(writing(LOOP, arms=("baseline", "eagle3_k3", "eagle3_k1"))).doubts.doubts
    found = {one.arm: one for one in doubts if one.code is Code.LOOPING_OUTPUTS}
    assert set(found) == {"baseline", "eagle3_k1", "eagle3_k3"}
    assert {one.severity for one in found.values()} == {Severity.DOUBT}
    assert "the target or the prompts" in found["eagle3_k3"].hint


def test_a_text_without_loops_raises_no_doubt_and_one_loop_among_many_texts_neither() -> None:
    assert Code.LOOPING_OUTPUTS not in {one.code for one in judge(writing(GOOD, arms=("eagle3_k3",))).doubts.doubts}
    one = judge(writing(LOOP, arms=("eagle3_k3",), first=1))
    assert Code.LOOPING_OUTPUTS not in {each.code for each in one.doubts.doubts}


def test_outputs_that_collapse_to_one_token_are_told() -> None:
    facts = edit_requests(
        shared_run(),
        lambda request: replace(request, completion_tokens=1, output_ids=request.output_ids[:1]),
        arm="eagle3_k1",
    )
    (doubt,) = (one for one in judge(facts).doubts.doubts if one.code is Code.SHORT_OUTPUTS)
    assert "outputs of eagle3_k1 ended after one token" in doubt.message


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 12), st.integers(2, 20))
def test_a_cycle_at_the_end_is_found_behind_any_beginning(head: list[int], period: int, times: int) -> None:
    cycle = [1000 + at for at in range(period)]
    found = closing_cycle(head + cycle * times)
    assert (found.period, found.tokens) == (period, period * times)


@given(st.lists(st.integers(0, 3), max_size=80))
def test_what_is_called_a_cycle_repeats_and_goes_back_no_further(ids: list[int]) -> None:
    found = closing_cycle(ids)
    end = ids[len(ids) - found.tokens :]
    assert found.tokens == 0 or found.tokens > found.period
    assert all(a == b for a, b in zip(end, end[found.period :], strict=False))
    before = len(ids) - found.tokens - 1
    if found.tokens and before >= 0:
        assert ids[before] != ids[before + found.period]
