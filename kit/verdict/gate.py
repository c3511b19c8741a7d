"""The row of the reporting table that the two gates give, as a sentence (method 2.6)."""

from __future__ import annotations

from kit.analysis import Gates
from kit.format import PERCENT, Reading, sentence
from kit.stats import GateSentence, GateWord
from kit.verdict.results import GateSection

__all__ = ["gate_failed", "gate_section"]

_SENTENCES = {
    GateSentence.STILL: "The acceptance curve does not move with K, and at equal positions the drafts are the same.",
    GateSentence.STILL_UNALIGNED: (
        "The acceptance curve does not move with K; that the drafts are the same at equal positions is not shown."
    ),
    GateSentence.MASKED: "Two effects cancel: the draft depends on K, and the choice of round starts hides it.",
    GateSentence.BOUNDARIES: (
        "The curve moves because K changes which positions are round starts; at equal positions the draft is unchanged."
    ),
    GateSentence.DRAFT_DEPENDS: "The draft itself depends on K, or on numerics: see the control.",
    GateSentence.MOVED: "The curve moves with K; why is not established.",
    GateSentence.TOO_FEW: "There are not enough data to say whether the curve moves with K.",
}


def gate_section(gates: Gates) -> GateSection:
    """The gates with their sentence."""
    return GateSection(gates, " ".join(_parts(gates)))


def gate_failed(gates: Gates) -> bool:
    """Whether acceptance must not be carried over from one K to another: v1 failed, or v2 vetoed."""
    return GateWord.FAIL in (gates.v1.word, gates.v2.word)


def _parts(gates: Gates) -> list[str]:
    if not gates.v1.cells:
        return [f"The gate was not run: {gates.v1.reason}."]
    parts = [_SENTENCES[gates.reading.sentence]]
    worst = gates.v1.worst
    if gates.v1.word is GateWord.INCONCLUSIVE and worst is not None and worst.n_needed is not None:
        parts.append(f"The widest cell (K={worst.K_a} against K={worst.K_b}) needs {worst.n_needed} prompts.")
    if gates.prompts_needed is not None:
        prompts = min(cell.d2.n for cell in gates.v2.cells if not cell.inside)
        margin = sentence(Reading(gates.margin_2), unit=PERCENT)
        parts.append(
            f"The aligned rounds are exactly concordant on {prompts} prompts; "
            f"{gates.prompts_needed} are needed for a bound of {margin}."
        )
    if gates.reading.functional_blocks:
        limit = sentence(Reading(gates.functional_limit), unit=PERCENT)
        parts.append(f"No curve gap is reported: tokens per round may be off by more than {limit}.")
    return parts
