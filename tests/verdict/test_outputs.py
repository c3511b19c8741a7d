"""Words about outputs are allowed as far as the evidence goes: margins missing means unresolved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import Divergence, Losslessness, Pairing
from kit.verdict import LosslessRow, LosslessWord
from kit.verdict.outputs import losslessness_section
from tests.builders import build_spec


def divergence(margin: float | None = None, rank: int | None = None) -> Divergence:
    return Divergence("p00000", "chat", 5, 20, 20, margin, rank)


def compared(*divergences: Divergence, prompts: int = 100, level: int = 8) -> Losslessness:
    return Losslessness(
        pairing=Pairing.ARM,
        arm="eagle3_k3",
        concurrency=level,
        launches=(1,),
        reference_arm="baseline",
        reference_concurrency=level,
        reference_launches=(0,),
        prompts=prompts,
        equal_ids=prompts - len(divergences),
        equal_lengths=prompts,
        diverged_upper=0.1,
        divergences=divergences,
    )


def control(diverged: int, *, prompts: int = 100, level: int = 8, other: int = 1) -> Losslessness:
    base = compared(*[divergence()] * diverged, prompts=prompts, level=level)
    return replace(base, pairing=Pairing.AA_TOKENS, arm="baseline", reference_concurrency=other)


def judged(*outputs: Losslessness, temperature: float = 0.0) -> LosslessRow:
    section = losslessness_section(build_spec(workload={"temperature": temperature}), outputs)
    (row,) = section.rows
    return row


@pytest.mark.parametrize(
    ("divergences", "controls", "word"),
    [
        ([], [control(9)], LosslessWord.LOSSLESS),
        ([], [], LosslessWord.LOSSLESS),
        ([divergence()], [control(9)], LosslessWord.UNRESOLVED),  # no margin
        ([divergence(0.005, 2)] * 3, [control(9)], LosslessWord.BENIGN_DIVERGENCE),
        ([divergence(0.005, 2)] * 3, [], LosslessWord.UNRESOLVED),  # no control
        ([divergence(0.005, 2)] * 60, [control(1)], LosslessWord.UNRESOLVED),  # in excess of the control
        ([divergence(0.5, 2)], [control(9)], LosslessWord.VIOLATED),  # no tie
        ([divergence(0.005, 3)], [control(9)], LosslessWord.VIOLATED),  # not the runner-up
        ([divergence(0.5, 2), divergence()], [control(9)], LosslessWord.VIOLATED),
    ],
)
def test_the_word_follows_from_margins_and_control(
    divergences: list[Divergence], controls: list[Losslessness], word: LosslessWord
) -> None:
    row = judged(compared(*divergences), *controls)
    assert row.word is word
    assert row.reason


def test_sampled_outputs_are_never_called_lossless() -> None:
    row = judged(compared(), control(0), temperature=1.0)
    assert row.word is LosslessWord.UNRESOLVED
    assert "sampled" in row.reason


def test_the_bound_is_printed_whatever_the_word() -> None:
    assert judged(compared(prompts=192)).hard_upper == pytest.approx(0.015, abs=0.001)


def test_another_launch_at_the_same_concurrency_is_the_better_control() -> None:
    same, wider = control(3, prompts=20, other=8), control(9, prompts=90, other=1)
    assert judged(compared(), wider, same).control is same
    assert judged(compared(), wider).control is wider
    assert judged(compared(level=32), wider).control is None


def test_controls_are_kept_beside_the_rows() -> None:
    section = losslessness_section(build_spec(), [compared(), control(9)])
    assert [one.arm for one in section.aa_tokens] == ["baseline"]
    assert section.greedy
