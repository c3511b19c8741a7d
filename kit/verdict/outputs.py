"""Words about outputs: each arm's divergence from its baseline, held against the baseline's own (method 4.3, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from kit.analysis import Losslessness, Pairing
from kit.spec import Spec
from kit.stats import Control, Divergence, LosslessWord, losslessness, tau_from_aa
from kit.stats import Losslessness as Judged
from kit.verdict.results import LosslessnessSection, LosslessRow

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
    parted = [d for d in outputs.divergences if not d.past_the_end]
    judged = losslessness(
        [Divergence(d.margin, d.rank, d.prefill_margin) for d in parted],
        prompts=outputs.prompts,
        tau=_tie_margin(spec, outputs, controls),
        control=Control(control.prompts, len(control.divergences)) if control else None,
        spread=outputs.prefill_spread,
    )
    word = judged.word if spec.workload.temperature == 0 else LosslessWord.UNRESOLVED
    return LosslessRow(
        outputs=outputs,
        word=word,
        reason=_reason(spec, judged, past_the_end=len(parted) < len(outputs.divergences)),
        control=control,
        p_excess=judged.excess_p,
        tau=judged.tau,
        hard=judged.hard,
        violations=judged.violations,
        unresolved=judged.unknown + judged.hard - judged.violations - judged.excused,
        hard_upper=judged.hard_rate.interval.hi if judged.hard_rate.interval else None,
        past_the_end=len(outputs.divergences) - len(parted),
    )


def _tie_margin(spec: Spec, outputs: Losslessness, controls: Sequence[Losslessness]) -> float:
    """Widest margin of a tie: that of all controls of the baseline whose margins are known, or the spec's floor."""
    mine = [control for control in controls if control.arm == outputs.reference_arm]
    margins = [d.margin for control in mine for d in control.divergences if d.margin is not None]
    return max(spec.losslessness.tau_floor, tau_from_aa(margins)["tau"])


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


def _reason(spec: Spec, judged: Judged, *, past_the_end: bool) -> str:
    """What the word rests on, or what keeps it from being better."""
    if spec.workload.temperature > 0:
        return "sampled outputs differ by chance; only greedy decoding can be compared token by token"
    match judged.word:
        case LosslessWord.LOSSLESS:
            end = (
                ", as far as the baseline's own end; some go on from there to the length limit" if past_the_end else ""
            )
            return f"every output is the same, token by token{end}"
        case LosslessWord.VIOLATED:
            return "a divergence is no tie: the reference preferred its own token by more than noise can explain"
        case LosslessWord.BENIGN_DIVERGENCE:
            return "every divergence is a near-tie, and there are no more of them than the baseline has against itself"
        case LosslessWord.UNRESOLVED:
            return _open(judged)


def _open(judged: Judged) -> str:
    """Why divergences stay unresolved, the first cause that applies."""
    if judged.unknown:
        return "the margins at the divergences were not recorded, so ties cannot be told from violations"
    if judged.hard > judged.violations + judged.excused:
        return "divergences wider than a tie were not asked again by prefill on the baseline's server"
    if judged.excess_p is None:
        return "the baseline was never compared with itself"
    return "the arm diverges more often than the baseline does from itself"
