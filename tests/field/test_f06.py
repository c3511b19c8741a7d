"""Greedy outputs differ at near-ties, and the baseline differs from itself there: neither lossless nor violated."""

from __future__ import annotations

import pytest

from kit.analysis import Losslessness
from kit.stats import LosslessWord
from kit.verdict import LosslessRow
from kit.verdict.outputs import losslessness_section
from tests.builders import build_spec
from tests.field.inputs import rows
from tests.field.outputs import Answer, answers, compared, control


def judged(arm: Losslessness, *controls: Losslessness) -> LosslessRow:
    (row,) = losslessness_section(build_spec(), (arm, *controls)).rows
    return row


def near_ties() -> tuple[Losslessness, Losslessness]:
    found = answers(rows("F06", "outputs.jsonl"))
    return compared(found, "k3", reference="none"), control(found, "none")


def test_two_of_eight_at_near_ties_beside_a_control_of_one_in_eight_are_benign() -> None:
    arm, baseline = near_ties()
    assert [(one.prompt, one.index) for one in arm.divergences] == [("3", 12), ("5", 9)]
    assert [(one.prompt, one.index, one.margin) for one in baseline.divergences] == [("5", 9, 0.0012)]
    row = judged(arm, baseline)
    assert row.word is LosslessWord.BENIGN_DIVERGENCE
    assert (row.outputs.prompts, row.outputs.prompts - row.outputs.equal_ids, row.hard) == (8, 2, 0)
    assert row.p_excess is not None
    assert row.p_excess > 0.05  # eight prompts cannot tell 2 from 1


@pytest.mark.parametrize("without", ["margin", "control"])
def test_without_margins_or_a_control_it_stays_unresolved(without: str) -> None:
    arm, baseline = near_ties()
    if without == "control":
        assert judged(arm).word is LosslessWord.UNRESOLVED
        return
    found = answers(rows("F06", "outputs_no_margin.jsonl"))
    (divergence,) = compared(found, "k3_b", reference="none_b").divergences
    assert (divergence.index, divergence.margin) == (7, None)
    row = judged(compared(found, "k3_b", reference="none_b"), baseline)
    assert row.word is LosslessWord.UNRESOLVED
    assert "margins at the divergences were not recorded" in row.reason


def test_only_the_first_difference_of_a_prompt_is_evidence() -> None:
    reference, other = Answer("1", (1, 2, 3, 4), (0.5, 0.001, 9.0, 9.0)), Answer("1", (1, 7, 8, 9), ())
    found = compared({"none": [[reference]], "k3": [[other]]}, "k3", reference="none")
    assert [(one.index, one.margin) for one in found.divergences] == [(1, 0.001)]
