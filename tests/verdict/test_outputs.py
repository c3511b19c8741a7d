"""Words about outputs are allowed as far as the evidence goes: margins missing means unresolved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import Divergence, Losslessness, Pairing
from kit.stats import LosslessWord
from kit.verdict import LosslessRow
from kit.verdict.outputs import losslessness_section
from tests.builders import build_spec


def divergence(margin: float | None = None, rank: int | None = None, *, past_the_end: bool = False) -> Divergence:
    return Divergence("p00000", "chat", 5, 20, 20, margin, rank, past_the_end=past_the_end)


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
        ([divergence(0.5, 2)], [control(9)], LosslessWord.UNRESOLVED),  # no tie, and nobody asked again
        ([divergence(0.005, 3)], [control(9)], LosslessWord.UNRESOLVED),  # not the runner-up, and nobody asked again
    ],
)
def test_the_word_follows_from_margins_and_control(
    divergences: list[Divergence], controls: list[Losslessness], word: LosslessWord
) -> None:
    row = judged(compared(*divergences), *controls)
    assert row.word is word
    assert row.reason


def test_margins_of_the_control_widen_what_counts_as_a_tie() -> None:
    wide = replace(control(0), divergences=tuple(divergence(m, 2) for m in (0.1, 0.2)), equal_ids=98)
    assert judged(compared(divergence(0.2, 2)), wide).word is LosslessWord.BENIGN_DIVERGENCE
    assert judged(compared(divergence(0.2, 2)), control(2)).hard == 1


def test_an_output_that_goes_on_past_the_end_is_named_and_not_counted_as_a_difference() -> None:
    row = judged(compared(divergence(past_the_end=True)), control(9))
    assert row.word is LosslessWord.LOSSLESS
    assert (row.past_the_end, row.hard, row.unresolved) == (1, 0, 0)
    assert "go on" in row.reason


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
