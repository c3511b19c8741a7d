"""The answer in one sentence: who is faster, whether outputs are the same, and how far the numbers can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import ClassComparison
from kit.checks import CellJudgement, CellState
from kit.format import RATIO, Reading, sentence
from kit.plan import make_plan
from kit.records import Origin, Phase
from kit.spec import Spec
from kit.stats import LosslessWord, SweepWord
from kit.verdict.results import LosslessnessSection
from kit.verdict.speed_results import ArmVerdict, SpeedSection

__all__ = ["Coverage", "answer"]

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
_MOST_FIGURES = 6
_OUTPUT_WORDS = {
    LosslessWord.LOSSLESS: "outputs are the baseline's, token by token",
    LosslessWord.BENIGN_DIVERGENCE: "outputs part from the baseline's only at near-ties",
    LosslessWord.UNRESOLVED: "whether outputs are lossless is unresolved",
    LosslessWord.VIOLATED: "outputs are NOT lossless",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where the facts come from, and how many cells were measured and are valid of those that the spec plans."""

    origin: Origin
    measured: int
    valid: int
    planned: int

    @classmethod
    def of(cls, origin: Origin, spec: Spec, states: Sequence[CellJudgement]) -> Coverage:
        """Counted from the plan; a capture was not made by one."""
        valid = sum(state.state is CellState.VALID for state in states)
        return cls(origin, len(states), valid, len(states) if origin is Origin.IMPORTED else _planned_cells(spec))


def _planned_cells(spec: Spec) -> int:
    cells = (cell for launch in make_plan(spec).launches for cell in launch.cells)
    return sum(Phase.TIMED in cell.passes for cell in cells)


def answer(speed: SpeedSection, outputs: LosslessnessSection, coverage: Coverage) -> str:
    """One sentence, ending in a full stop."""
    return f"{'; '.join([_speed(coverage.origin, speed), *_outputs(speed.arms, outputs), _trust(coverage)])}."


def _speed(origin: Origin, speed: SpeedSection) -> str:
    if origin is Origin.IMPORTED:
        return "This imported capture supports no word about speed"
    if speed.content.synthetic:
        return f"{_WHERE[origin]} {_by_content(speed)}"
    arms = speed.arms
    clauses = [clause for word in SweepWord if (clause := _clause(word, [arm for arm in arms if arm.word is word]))]
    return f"{_WHERE[origin]} {', and '.join(clauses) or 'no arm was compared with a baseline'}"


def _by_content(speed: SpeedSection) -> str:
    """Where some prompts are synthetic: no word, and the ratios of the natural ones by name."""
    natural, synthetic = speed.content.natural, _listed(speed.content.synthetic)
    if not natural:
        return f"every prompt is synthetic content ({synthetic}), which carries no word about speculation"
    figures = [one for one in speed.classes if one.prompt_class in natural and one.ratio.point is not None]
    if not figures:
        told = f"the natural ones ({_listed(natural)}) have no ratio of their own"
    elif len(figures) > _MOST_FIGURES:
        told = f"the natural ones ({_listed(natural)}) have their ratios by kind of prompt"
    else:
        told = f"on natural ones the ratio is {_listed([_figure(one) for one in figures])}"
    return f"some prompts are synthetic content ({synthetic}), which carries no word about speculation; {told}"


def _figure(one: ClassComparison) -> str:
    interval = one.ratio.interval
    reading = Reading(one.ratio.point, *((interval.lo, interval.hi) if interval else ()))
    value = sentence(reading, unit=RATIO)
    return f"{value} for {one.prompt_class} ({one.arm} / {one.baseline} at concurrency {one.concurrency})"


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


def _outputs(arms: Sequence[ArmVerdict], outputs: LosslessnessSection) -> list[str]:
    """The worst word, on how many answers of which arms: they count whether or not a cell may be used for speed."""
    if not outputs.rows:
        return []
    worst = max((row.word for row in outputs.rows), key=_OUTPUT_ORDER.index)
    compared = list(dict.fromkeys(row.outputs.arm for row in outputs.rows))
    whose = "" if {arm.arm for arm in arms} <= set(compared) else f" of {_listed(compared)}"
    return [f"{_OUTPUT_WORDS[worst]} ({sum(row.outputs.prompts for row in outputs.rows):,} answers{whose} compared)"]


def _trust(coverage: Coverage) -> str:
    if not coverage.measured:
        return "nothing was measured"
    if coverage.valid == coverage.planned:
        return f"all {coverage.planned} cells are valid"
    of = "" if coverage.origin is Origin.IMPORTED else " planned"
    return f"{coverage.valid} of {coverage.planned}{of} cells are valid"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
