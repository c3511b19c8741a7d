"""Words about outputs: each arm's divergence from its baseline, held against the baseline's own (method 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from kit.analysis import Losslessness, Pairing
from kit.spec import Spec
from kit.stats import lossless_verdict
from kit.verdict.results import LosslessnessSection, LosslessRow, LosslessWord

__all__ = ["losslessness_section"]


def losslessness_section(spec: Spec, compared: Sequence[Losslessness]) -> LosslessnessSection:
    """A row for each arm and concurrency, and the controls."""
    controls = tuple(one for one in compared if one.pairing is Pairing.AA_TOKENS)
    return LosslessnessSection(
        rows=tuple(_row(spec, one, controls) for one in compared if one.pairing is Pairing.ARM),
        aa_tokens=controls,
        greedy=spec.workload.temperature == 0,
    )


def _row(spec: Spec, outputs: Losslessness, controls: Sequence[Losslessness]) -> LosslessRow:
    control = _control(outputs, controls)
    judged = lossless_verdict(
        outputs.prompts,
        divergences=[{"margin": d.margin, "rank": d.rank} for d in outputs.divergences],
        tau=spec.losslessness.tau_floor,
        aa_n=control.prompts if control else None,
        aa_diverged=len(control.divergences) if control else None,
    )
    word = LosslessWord(judged["verdict"]) if spec.workload.temperature == 0 else LosslessWord.UNRESOLVED
    return LosslessRow(
        outputs=outputs,
        word=word,
        reason=_reason(spec, word, outputs, control, judged["unknown"]),
        control=control,
        p_excess=judged["p_rate"],
        hard=judged["hard"],
        unresolved=judged["unknown"],
        hard_upper=judged["hard_upper"],
    )


def _control(outputs: Losslessness, controls: Sequence[Losslessness]) -> Losslessness | None:
    """The baseline against itself, nearest to the comparison.

    Best is another launch at the same concurrency; else the comparison with another concurrency that has most prompts.
    """
    level = outputs.concurrency
    mine = [
        control
        for control in controls
        if control.arm == outputs.reference_arm and level in (control.concurrency, control.reference_concurrency)
    ]
    return max(
        mine,
        key=lambda control: (control.concurrency == control.reference_concurrency, control.prompts),
        default=None,
    )


def _reason(spec: Spec, word: LosslessWord, outputs: Losslessness, control: Losslessness | None, unknown: int) -> str:
    """What the word rests on, or what keeps it from being better."""
    if spec.workload.temperature > 0:
        return "sampled outputs differ by chance; only greedy decoding can be compared token by token"
    if word is LosslessWord.LOSSLESS:
        return "every output is the same, token by token"
    if word is LosslessWord.VIOLATED:
        return "a divergence is no tie: the reference preferred its own token by more than noise can explain"
    if word is LosslessWord.BENIGN_DIVERGENCE:
        return "every divergence is a near-tie, and there are no more of them than the baseline has against itself"
    if unknown:
        return "the margins at the divergences were not recorded, so ties cannot be told from violations"
    if control is None:
        return "the baseline was never compared with itself"
    return "the arm diverges more often than the baseline does from itself"
