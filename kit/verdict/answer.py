"""The answer in one sentence: who is faster, whether outputs are the same, and how far the numbers can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from kit.checks import CellJudgement, CellState
from kit.records import Origin
from kit.stats import LosslessWord, SweepWord
from kit.verdict.results import ArmVerdict, LosslessnessSection

__all__ = ["answer"]

# From best to worst: an arm is as good as its worst level.
_OUTPUT_ORDER = (
    LosslessWord.LOSSLESS,
    LosslessWord.BENIGN_DIVERGENCE,
    LosslessWord.UNRESOLVED,
    LosslessWord.VIOLATED,
)
_WHERE = {
    Origin.MEASURED: "On this host",
    Origin.ATTACHED: "On the attached servers",
    Origin.SIMULATED: "In this simulated world",
}
_OUTPUT_WORDS = {
    LosslessWord.LOSSLESS: "outputs are the baseline's, token by token",
    LosslessWord.BENIGN_DIVERGENCE: "outputs part from the baseline's only at near-ties",
    LosslessWord.UNRESOLVED: "whether outputs are lossless is unresolved",
    LosslessWord.VIOLATED: "outputs are NOT lossless",
}


def answer(
    origin: Origin, arms: Sequence[ArmVerdict], outputs: LosslessnessSection, states: Sequence[CellJudgement]
) -> str:
    """One sentence, ending in a full stop."""
    return f"{'; '.join([_speed(origin, arms), *_outputs(outputs), _trust(states)])}."


def _speed(origin: Origin, arms: Sequence[ArmVerdict]) -> str:
    if origin is Origin.IMPORTED:
        return "This imported capture supports no word about speed"
    clauses = [clause for word in SweepWord if (clause := _clause(word, [arm for arm in arms if arm.word is word]))]
    return f"{_WHERE[origin]} {', and '.join(clauses) or 'no arm was compared with a baseline'}"


def _clause(word: SweepWord, arms: Sequence[ArmVerdict]) -> str:
    if not arms:
        return ""
    names, baselines = _listed([arm.arm for arm in arms]), _listed(sorted({arm.baseline for arm in arms}))
    one = len(arms) == 1
    match word:
        case SweepWord.BASELINE_DOMINATES:
            return f"{names} {'is' if one else 'are'} slower than {baselines} at every measured concurrency"
        case SweepWord.EAGLE3_DOMINATES:
            return f"{names} {'is' if one else 'are'} faster than {baselines} at every measured concurrency"
        case SweepWord.EAGLE3_WINS_UP_TO:
            verbs = ("is", "loses") if one else ("are", "lose")
            return f"{names} {verbs[0]} faster than {baselines} at low concurrency and {verbs[1]} at high"
        case SweepWord.INCONCLUSIVE:
            return f"{names} against {baselines} {'is' if one else 'are'} undecided"


def _outputs(outputs: LosslessnessSection) -> list[str]:
    if not outputs.rows:
        return []
    worst = max((row.word for row in outputs.rows), key=_OUTPUT_ORDER.index)
    return [_OUTPUT_WORDS[worst]]


def _trust(states: Sequence[CellJudgement]) -> str:
    valid = sum(state.state is CellState.VALID for state in states)
    if valid == len(states):
        return f"all {len(states)} cells are valid" if states else "nothing was measured"
    return f"{valid} of {len(states)} cells are valid"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
