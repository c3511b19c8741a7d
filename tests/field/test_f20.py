"""Outputs that no near-tie explains, and a sampling option that the verify step drops."""

from __future__ import annotations

import pytest

from kit.stats import LosslessWord
from kit.verdict import LosslessRow
from kit.verdict.outputs import losslessness_section
from tests.builders import build_spec
from tests.field.inputs import refusal, rows
from tests.field.outputs import Table, answers, asked_again, compared, control


def table() -> Table:
    return answers(rows("F20", "outputs_a.jsonl"))


def arm() -> str:
    return next(name for name in table() if name != "none")


def judged(found: Table, *, prefilled: bool) -> LosslessRow:
    outputs = compared(found, arm(), reference="none")
    outputs = asked_again(outputs, spread=0.05) if prefilled else outputs
    (row,) = losslessness_section(build_spec(), (outputs, control(found, "none"))).rows
    return row


def test_six_of_eight_far_from_a_tie_are_a_violation() -> None:
    row = judged(table(), prefilled=True)
    assert control(table(), "none").divergences == ()
    assert {one.prompt for one in row.outputs.divergences} == {"1", "3", "4", "5", "6", "8"}
    assert all(1 <= one.index <= 4 and one.margin and one.margin >= 1.8 for one in row.outputs.divergences)
    assert (row.word, row.hard, row.violations) == (LosslessWord.VIOLATED, 6, 6)


@pytest.mark.parametrize("prompts", [("1", "2", "7"), ("3", "2")], ids=["one of three", "one of two"])
def test_one_such_prompt_is_enough(prompts: tuple[str, ...]) -> None:
    few = {name: [[one for one in each if one.prompt in prompts] for each in reps] for name, reps in table().items()}
    assert judged(few, prefilled=True).word is LosslessWord.VIOLATED


def test_before_the_baseline_was_asked_again_it_is_unresolved_and_never_noise() -> None:
    row = judged(table(), prefilled=False)
    assert (row.word, row.hard) == (LosslessWord.UNRESOLVED, 6)
    assert "were not asked again by prefill" in row.reason


def test_outputs_without_the_penalty_are_not_called_the_baselines() -> None:
    """The arm gives on every prompt what the baseline gives without the penalty."""
    given = rows("F20", "outputs_b.jsonl")
    plain, asked = ([r for r in given if ("frequency_penalty" in r["request"]) is wanted] for wanted in (False, True))
    assert {r["arm"] for r in plain} == {"none"}
    dropped = compared(answers([*[r | {"arm": "plain"} for r in plain], *asked]), "k3", reference="plain")
    assert (dropped.equal_ids, dropped.prompts) == (4, 4)
    outputs = compared(answers(asked), "k3", reference="none")
    assert [one.index >= 3 for one in outputs.divergences] == [True] * 4
    (row,) = losslessness_section(build_spec(), (outputs,)).rows
    assert row.word is LosslessWord.UNRESOLVED


@pytest.mark.parametrize("penalty", ["frequency_penalty", "presence_penalty"])
def test_a_spec_cannot_ask_for_a_penalty(penalty: str) -> None:
    workload = build_spec().model_dump(mode="json")["workload"] | {penalty: 0.8}
    assert penalty in refusal(workload=workload)
