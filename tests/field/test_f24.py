"""Adaptive asked for, fixed depth got: the arm is mislabelled, and nothing may be said of adaptive K."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.checks import CellState, Code, Severity
from kit.diagnosis import Cause, diagnose
from kit.records import Launch, RunFacts
from kit.verdict import judge
from tests.builders import build_run, build_spec, edit_launches
from tests.field.inputs import objects, refusal, text

RUN, INFO, LOG = objects("F24", "run.json"), objects("F24", "server_info.json"), text("F24", "server.log")
ADAPTIVE = {"kind": "adaptive", "name": RUN["arm"], "num_steps": 3}
BASELINE = {"kind": "baseline", "name": "baseline"}

# Other reasons, in SGLang's other wording; asked for at the top, dropped in the state of the scheduler.
REASONS = [
    "attention data parallelism",
    "enable_multi_layer_eagle",
    "enable_two_batch_overlap",
    "enable_pdmux",
]


def served(info: dict[str, Any], log: str) -> RunFacts:
    """A run whose adaptive servers say `info` about themselves and wrote `log`."""

    def change(launch: Launch) -> Launch:
        return replace(launch, server_info={**(launch.server_info or {}), **info}, log=log)

    return edit_launches(build_run(build_spec(arms=[BASELINE, ADAPTIVE])), change, arm=RUN["arm"])


def told(facts: RunFacts) -> set[str]:
    """What is said of the mode of an arm that every cell of is void."""
    verdict = judge(facts)
    assert {cell.state for cell in verdict.doubts.cells if cell.arm == RUN["arm"]} == {CellState.INVALID}
    assert {one.word.value for one in verdict.speed.comparisons} == {"inconclusive"}
    found = [one for one in verdict.doubts.doubts if one.code is Code.ADAPTIVE_NOT_IN_FORCE]
    assert {one.severity for one in found} == {Severity.INVALID}
    return {one.message for one in found}


def test_the_arm_is_named_for_what_it_ran_and_why() -> None:
    assert RUN["requested"]["speculative_adaptive"]
    (message,) = told(served(INFO, LOG))
    assert "fixed at 3 steps, top-k 4, 8 draft tokens" in message
    assert "speculative_eagle_topk=4 (1 only)" in message


def test_the_log_alone_tells_it_and_advises_what_adaptive_needs() -> None:
    found = diagnose(LOG)
    assert found.cause is Cause.ADAPTIVE_OFF
    assert all(need in found.advice for need in ("top-k 1", "data parallelism", "two-batch overlap", "pdmux"))


@pytest.mark.parametrize("reason", REASONS)
def test_what_the_scheduler_runs_counts_and_not_what_was_asked_for(reason: str) -> None:
    state = {"speculative_adaptive": False, "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
    info = {"speculative_adaptive": True, "internal_states": [state]}
    log = f"[2026-02-01 09:00:00] speculative_adaptive disabled: {reason}\n"
    (message,) = told(served(info, log))
    assert "fixed at 3 steps, top-k 1, 4 draft tokens" in message
    assert message.endswith(reason)


def test_a_log_without_a_reason_does_not_hide_the_fixed_depth() -> None:
    (message,) = told(served({"speculative_adaptive": None}, "ready"))
    assert message == "adaptive mode is off: the arm is fixed at 3 steps, top-k 1, unknown draft tokens"


def test_an_adaptive_arm_that_adapts_raises_no_doubt() -> None:
    verdict = judge(served({"speculative_adaptive": True}, "ready"))
    assert Code.ADAPTIVE_NOT_IN_FORCE not in {one.code for one in verdict.doubts.doubts}


def test_steps_that_never_change_are_shown_and_not_taken_for_a_choice() -> None:
    facts = served({"speculative_adaptive": True}, "ready")
    still = replace(facts.trace.iterations, draft_tokens=facts.trace.iterations.draft_tokens.clip(max=2))
    doubts = judge(replace(facts, trace=replace(facts.trace, iterations=still))).doubts.doubts
    found = [one.message for one in doubts if one.code is Code.ADAPTIVE_NOT_IN_FORCE]
    assert len(found) == 3
    assert all("the controller never left K=1" in message for message in found)


@pytest.mark.parametrize(
    "flag", ["enable-dp-attention", "enable-multi-layer-eagle", "enable-two-batch-overlap", "enable-pdmux"]
)
@pytest.mark.parametrize("place", ["server", "arm"])
def test_a_flag_that_switches_adaptive_off_is_refused_before_anything_starts(flag: str, place: str) -> None:
    flags = {"extra_flags": {flag: True}}
    server = build_spec().server.model_dump(mode="json")
    if place == "server":
        reason = refusal(arms=[BASELINE, ADAPTIVE], server=server | flags)
    else:
        reason = refusal(arms=[BASELINE, ADAPTIVE | {"server": flags}])
    assert flag in reason
    assert "switches the adaptive controller off" in reason


def test_top_k_4_cannot_be_asked_of_an_adaptive_arm() -> None:
    assert "topk" in refusal(arms=[BASELINE, ADAPTIVE | {"topk": RUN["requested"]["speculative_eagle_topk"]}])
    flags = {"extra_flags": {"speculative-eagle-topk": 4}}
    assert "already follows from other fields" in refusal(arms=[BASELINE, ADAPTIVE | {"server": flags}])
