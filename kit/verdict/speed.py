"""Words about speed: per comparison against the noise threshold, per arm over all levels (method 5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kit.analysis import ArmSweep, CellResult, Comparison, CrossoverResult, Speed
from kit.checks import CellJudgement, CellState
from kit.format import PLAIN, Reading, sentence
from kit.records import Origin, Role, RunFacts
from kit.spec import Spec
from kit.stats import CrossoverKind, LevelTest, SpeedWord, SweepWord, holm, speed_words
from kit.verdict.content import content_of
from kit.verdict.speed_results import ArmVerdict, ComparisonVerdict, CrossoverVerdict, SpeedSection, TrueThroughput

__all__ = ["speed_section"]

IMPORTED = "an imported capture supports no word about speed"
SYNTHETIC = "some prompts are synthetic content, which carries no word about speculation"


def speed_section(
    facts: RunFacts, spec: Spec, *, cells: Sequence[CellResult], speed: Speed, states: Sequence[CellJudgement]
) -> SpeedSection:
    """All comparisons with their words; imported captures and synthetic content get the numbers and no word."""
    rule = spec.decision
    content = content_of(facts)
    silent = IMPORTED if facts.header.origin is Origin.IMPORTED else SYNTHETIC if content.synthetic else None
    return SpeedSection(
        metric=rule.metric,
        noise_threshold=rule.noise_threshold,
        level=rule.confidence_level,
        holm=rule.candidate is None,
        candidate=rule.candidate,
        arms=tuple(
            _arm(sweep, crossing, silent) for sweep, crossing in zip(speed.sweeps, speed.crossovers, strict=True)
        ),
        comparisons=tuple(_comparisons(spec, speed.comparisons, cells, states, silent=silent)),
        classes=speed.classes,
        crossovers=tuple(_crossover(result, facts) for result in speed.crossovers),
        levels=speed.levels,
        cells=tuple(cells),
        aa_speed=speed.aa_speed,
        closing=speed.closing,
        truth=tuple(_true_throughputs(facts, spec)),
        content=content,
    )


def _comparisons(
    spec: Spec,
    comparisons: Sequence[Comparison],
    cells: Sequence[CellResult],
    states: Sequence[CellJudgement],
    *,
    silent: str | None,
) -> Iterator[ComparisonVerdict]:
    """Words in the order of the comparisons; the family of the Holm adjustment is every arm at every level.

    A candidate named before the run is tested by itself, one test a level; the others remain a family.
    """
    candidate = spec.decision.candidate
    words: dict[tuple[str, int], tuple[SpeedWord, float]] = {}
    family = [c for c in comparisons if c.arm != candidate]
    for group in (family, *([c] for c in comparisons if c.arm == candidate)):
        words |= _words(group, alpha=1 - spec.decision.confidence_level)
    for comparison in comparisons:
        word, p = words[comparison.arm, comparison.concurrency]
        word = SpeedWord.INCONCLUSIVE if silent else word
        yield ComparisonVerdict(
            comparison=comparison,
            word=word,
            p_adjusted=p if comparison.ratio.interval else None,
            reason=_reason(comparison, word, cells, states, silent=silent),
            tolerable=None if silent else _tolerable(comparison, spec.decision.max_slowdown),
        )


def _words(group: Sequence[Comparison], *, alpha: float) -> dict[tuple[str, int], tuple[SpeedWord, float]]:
    """Word and adjusted p (of a difference, or of equivalence where that is the word) of one family."""
    tests = [LevelTest(c.concurrency, c.ratio, c.p_faster, c.p_slower, c.p_equivalent) for c in group]
    different = holm([test.p_different for test in tests])
    equivalent = holm([test.p_equivalent for test in tests])
    return {
        (c.arm, c.concurrency): (word, q if word is SpeedWord.EQUIVALENT else p)
        for c, word, p, q in zip(group, speed_words(tests, alpha=alpha), different, equivalent, strict=True)
    }


def _reason(
    comparison: Comparison,
    word: SpeedWord,
    cells: Sequence[CellResult],
    states: Sequence[CellJudgement],
    *,
    silent: str | None,
) -> str | None:
    """Why there is no word; None when there is one."""
    if word is not SpeedWord.INCONCLUSIVE:
        return None
    if silent:
        return silent
    if comparison.ratio.interval is None:
        causes = _causes(comparison, cells, states)
        return f"{comparison.ratio.reason}; {causes}" if causes else comparison.ratio.reason
    return "the interval reaches across the noise threshold, or the adjustment for many comparisons takes the word away"


def _causes(comparison: Comparison, cells: Sequence[CellResult], states: Sequence[CellJudgement]) -> str:
    """What kept cells of a comparison from deciding."""
    measured = {cell.cell for cell in cells if cell.role is Role.MEASURE}
    out = [
        state
        for state in states
        if state.arm in (comparison.arm, comparison.baseline)
        and state.concurrency == comparison.concurrency
        and state.cell in measured
        and state.state is not CellState.VALID
    ]
    causes = dict.fromkeys(cause.value for state in out for cause in state.causes)
    return f"{len(out)} cells left out ({', '.join(causes)})" if out else ""


def _tolerable(comparison: Comparison, max_slowdown: float | None) -> bool | None:
    """Whether the whole interval stays above the largest loss that the spec tolerates; None without either."""
    interval = comparison.ratio.interval
    return None if max_slowdown is None or interval is None else interval.lo > 1 - max_slowdown


def _arm(sweep: ArmSweep, crossing: CrossoverResult, silent: str | None) -> ArmVerdict:
    word = SweepWord.INCONCLUSIVE if silent else sweep.word
    text = silent[0].upper() + silent[1:] + "." if silent else _sentence(sweep, crossing)
    return ArmVerdict(sweep.arm, sweep.baseline, word, sweep.undecided, text)


def _sentence(sweep: ArmSweep, crossing: CrossoverResult) -> str:
    arm, baseline = sweep.arm, sweep.baseline
    measured = f"concurrency {crossing.range_low} to {crossing.range_high}"
    match sweep.word:
        case SweepWord.BASELINE_DOMINATES:
            return f"{baseline} is faster than {arm} at every measured level ({measured})."
        case SweepWord.EAGLE3_DOMINATES:
            return f"{arm} is faster than {baseline} at every measured level ({measured})."
        case SweepWord.EAGLE3_WINS_UP_TO:
            return f"{arm} is faster than {baseline} at low concurrency and slower at high; {_turning(crossing)}."
        case SweepWord.INCONCLUSIVE:
            levels = ", ".join(str(level) for level in sweep.undecided)
            where = f"at concurrency {levels}" if levels else "as a whole: the levels, tested together, show no pattern"
            return f"{arm} against {baseline} is undecided {where}."


def _turning(crossing: CrossoverResult) -> str:
    estimate = crossing.concurrency
    if crossing.crossing is not CrossoverKind.FOUND or estimate.interval is None:
        return f"where it turns is not established ({estimate.reason})"
    reading = Reading(estimate.point, estimate.interval.lo, estimate.interval.hi)
    return f"it turns at concurrency {sentence(reading, unit=PLAIN)}"


def _truth(facts: RunFacts) -> Mapping[str, Mapping[str, object]]:
    """What the simulated world really does, as the run stored it; empty for anything real."""
    found = facts.header.host.get("simulated_truth")
    return found if isinstance(found, Mapping) and facts.header.origin is Origin.SIMULATED else {}


def _true_throughputs(facts: RunFacts, spec: Spec) -> Iterator[TrueThroughput]:
    """The truth at the levels of the spec; a world may know more."""
    for arm, levels in _truth(facts).get("throughput", {}).items():
        if isinstance(levels, Mapping):
            for concurrency in spec.load.concurrency:
                if (tok_s := levels.get(str(concurrency))) is not None:
                    yield TrueThroughput(arm, concurrency, float(tok_s))


def _crossover(result: CrossoverResult, facts: RunFacts) -> CrossoverVerdict:
    crossings = _truth(facts).get("crossover", {})
    known = result.arm in crossings
    value = crossings.get(result.arm)
    truth = float(value) if isinstance(value, int | float) else None
    return CrossoverVerdict(result, known, truth, _covered(result, truth) if known else None)


def _covered(result: CrossoverResult, truth: float | None) -> bool | None:
    """Whether the set holds the truth; None where it excludes nothing, or nothing was estimated.

    A world without a crossover in range is covered unless one is claimed.
    """
    if not result.confidence_set and result.concurrency.point is None and result.crossing is CrossoverKind.INCONCLUSIVE:
        return None
    if result.open_low and result.open_high and len(result.confidence_set) == 1:
        return None
    if truth is not None:
        return any(interval.contains(truth) for interval in result.confidence_set)
    return result.crossing is not CrossoverKind.FOUND
