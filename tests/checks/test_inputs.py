"""The same prompt is the same number of tokens in every launch, or the launch is compared with nothing."""

from __future__ import annotations

from dataclasses import replace

from kit.checks import CellState, Code
from kit.records import RequestRecord, RunFacts
from kit.verdict import judge
from tests.builders import edit_requests, shared_run


def longer(request: RequestRecord) -> RequestRecord:
    return replace(request, prompt_tokens=(request.prompt_tokens or 0) + 1)


def told(facts: RunFacts) -> list[str]:
    return [one.message for one in judge(facts).doubts.doubts if one.code is Code.INPUTS_DIFFER]


def test_equal_inputs_raise_no_doubt() -> None:
    assert told(shared_run()) == []


def test_an_arm_whose_server_adds_a_token_is_void_and_the_others_stand() -> None:
    facts = edit_requests(shared_run(), longer, arm="eagle3_k3")
    messages = told(facts)
    assert len(messages) == 3
    assert all("16 of 16 prompts became another number of tokens than in launch " in one for one in messages)
    assert all("11, there 10" in one for one in messages)
    states = judge(facts).doubts.cells
    assert {one.state for one in states if one.arm == "eagle3_k3"} == {CellState.INVALID}
    assert {one.state for one in states if one.arm != "eagle3_k3"} == {CellState.VALID}


def test_one_prompt_in_one_launch_is_enough() -> None:
    (message,) = told(edit_requests(shared_run(), longer, arm="eagle3_k1", first=1))
    assert message.startswith("1 of 16 prompts")


def test_a_baseline_that_contradicts_itself_is_void() -> None:
    (message,) = (one for one in told(edit_requests(shared_run(), longer, arm="baseline", first=1)) if "10, 11," in one)
    assert message.startswith("1 of 16 prompts")
