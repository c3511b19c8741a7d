"""Saturation: throughput over concurrency, where an arm stops being faster, and where it stops growing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kit.analysis import ArmSaturation, ClassComparison, CrossoverResult, LevelResult, PeakComparison
from kit.format import COUNT, MISSING, PLAIN, RATIO, TOKENS_PER_SECOND, Reading, probability, sentence
from kit.report.entries import column, defined, in_words, points
from kit.report.escape import code
from kit.report.flags import kind_of_prompt
from kit.report.measure import Measure, shown_measure
from kit.report.sections.cells import cell_table
from kit.report.table import Entry, table
from kit.stats import CrossoverKind, Estimate, Saturation
from kit.verdict import ArmVerdict, ComparisonVerdict, Content, CrossoverVerdict, SpeedSection, Verdict

__all__ = ["ArmTable", "SaturationView", "saturation_view"]

_NOT_MEASURED = Estimate.missing("no valid cell at this concurrency")


@dataclass(frozen=True, slots=True)
class ArmTable:
    """One arm against its baseline over all concurrencies."""

    arm: str
    baseline: str
    table: str
    crossover: str


@dataclass(frozen=True, slots=True)
class SaturationView:
    """Strings of the section; `truth` explains the extra columns of a simulated run."""

    warning: str
    arms: tuple[ArmTable, ...]
    truth: str
    crossover: str
    crossover_table: str
    maximum_table: str
    peak_table: str
    class_ratio: str
    class_table: str
    ttft: str
    chunk_gap: str
    achieved: str
    cell_table: str


def saturation_view(verdict: Verdict) -> SaturationView:
    """The section's strings."""
    speed, measure = verdict.speed, shown_measure(verdict.speed)
    return SaturationView(
        warning=measure.warning if speed.levels else "",
        arms=tuple(_arm_table(arm, speed) for arm in speed.arms),
        truth=_TRUTH if speed.truth and measure.is_window else "",
        crossover=defined("crossover"),
        crossover_table=_crossover_table(speed.crossovers) if speed.crossovers else "",
        maximum_table=_maximum_table(verdict.saturation) if verdict.saturation else "",
        peak_table=_peak_table(verdict.peaks) if verdict.peaks else "",
        class_ratio=defined("class_speed_ratio"),
        class_table=_class_table(speed.classes, speed.content) if speed.classes else "",
        ttft=defined("ttft_s"),
        chunk_gap=defined("chunk_gap_s"),
        achieved=defined("achieved_concurrency"),
        cell_table=cell_table(speed.cells),
    )


_TRUTH = (
    "The simulator's own values are known exactly and stand beside the measured ones: the measurement is right where "
    "its interval holds them."
)


def _arm_table(arm: ArmVerdict, speed: SpeedSection) -> ArmTable:
    mine = sorted(
        (c for c in speed.comparisons if c.comparison.arm == arm.arm), key=lambda word: word.comparison.concurrency
    )
    found = next((c for c in speed.crossovers if c.result.arm == arm.arm), None)
    return ArmTable(
        arm=code(arm.arm),
        baseline=code(arm.baseline),
        table=_ratio_table(mine, speed) if mine else "",
        crossover=_crossover_sentence(found.result) if found else "",
    )


def _ratio_table(words: Sequence[ComparisonVerdict], speed: SpeedSection) -> str:
    pairs, measure = [word.comparison for word in words], shown_measure(speed)
    levels = {(level.arm, level.concurrency): level for level in speed.levels}
    truth = {(true.arm, true.concurrency): true.tok_s for true in speed.truth if measure.is_window}
    columns: list[Sequence[str | Entry]] = [
        [str(pair.concurrency) for pair in pairs],
        _throughputs((levels.get((pair.baseline, pair.concurrency)) for pair in pairs), measure),
        _throughputs((levels.get((pair.arm, pair.concurrency)) for pair in pairs), measure),
        column([measure.ratio(pair) for pair in pairs], unit=RATIO),
        [str(len(pair.blocks)) for pair in pairs],
        [MISSING if word.p_adjusted is None else probability(word.p_adjusted) for word in words],
        [Entry(word.word.value, word.reason) for word in words],
    ]
    header = [
        "Requests at once",
        f"Baseline, {measure.name}",
        f"Arm, {measure.name}",
        "Ratio",
        "Pairs",
        "p",
        "Word",
    ]
    if truth:
        ratios = [_true_ratio(truth, pair.arm, pair.baseline, pair.concurrency) for pair in pairs]
        columns += [
            points([truth.get((pair.arm, pair.concurrency)) for pair in pairs], unit=TOKENS_PER_SECOND),
            points(ratios, unit=RATIO),
        ]
        header += ["True, tok/s", "True ratio"]
    return table(header, list(zip(*columns, strict=True)), align="rrrrrrlrr"[: len(header)])


def _throughputs(levels: Iterable[LevelResult | None], measure: Measure) -> tuple[Entry, ...]:
    return column([measure.throughput(level) if level else _NOT_MEASURED for level in levels], unit=TOKENS_PER_SECOND)


def _true_ratio(truth: dict[tuple[str, int], float], arm: str, baseline: str, concurrency: int) -> float | None:
    top, bottom = truth.get((arm, concurrency)), truth.get((baseline, concurrency))
    return top / bottom if top is not None and bottom else None


def _crossover_sentence(result: CrossoverResult) -> str:
    span = f"between {result.range_low} and {result.range_high} requests at once"
    if result.crossing is CrossoverKind.FOUND:
        return f"The ratio crosses 1 at {in_words(result.concurrency, unit=PLAIN)} requests at once."
    if result.crossing is CrossoverKind.NONE_IN_RANGE:
        return f"The ratio does not cross 1 {span}."
    return f"Whether the ratio crosses 1 {span} is not decided."


def _crossover_table(crossovers: Sequence[CrossoverVerdict]) -> str:
    known = any(crossover.truth_known for crossover in crossovers)
    at = column([crossover.result.concurrency for crossover in crossovers], unit=PLAIN)
    rows = [
        (
            code(crossover.result.arm),
            crossover.result.crossing.value,
            entry,
            _confidence_set(crossover.result),
            f"{crossover.result.range_low} to {crossover.result.range_high}",
            *((_truth(crossover), _covered(crossover.covered)) if known else ()),
        )
        for crossover, entry in zip(crossovers, at, strict=True)
    ]
    header = ["Arm", "Crossover", "Requests at once", "Values that fit the data", "Measured"]
    header += ["True crossover", "Truth among them"] if known else []
    return table(header, rows, align="llrllrl"[: len(header)])


def _confidence_set(result: CrossoverResult) -> str:
    if result.open_low and result.open_high and len(result.confidence_set) == 1:
        return "all that were measured"
    parts = [
        sentence(Reading(part.lo), unit=PLAIN) + " to " + sentence(Reading(part.hi), unit=PLAIN)
        for part in result.confidence_set
    ]
    if parts and result.open_low:
        parts[0] += " (and perhaps below)"
    if parts and result.open_high:
        parts[-1] += " (and perhaps above)"
    return ", ".join(parts) or "none"


def _truth(crossover: CrossoverVerdict) -> str:
    if not crossover.truth_known:
        return MISSING
    return "none in range" if crossover.truth is None else sentence(Reading(crossover.truth), unit=PLAIN)


def _covered(covered: bool | None) -> str:
    return MISSING if covered is None else "yes" if covered else "**no**"


def _maximum_table(curves: Sequence[ArmSaturation]) -> str:
    maxima = column([curve.saturation.x_max for curve in curves], unit=TOKENS_PER_SECOND)
    knees = column([curve.saturation.knee for curve in curves], unit=PLAIN)
    rows = [
        (code(curve.arm), top, knee, *_reached(curve.saturation))
        for curve, top, knee in zip(curves, maxima, knees, strict=True)
    ]
    header = ("Arm", "Fitted maximum, tok/s", "Maximum / one request", "95 % of it from", "Confirmed from")
    return table(header, rows, align="lrrrr")


def _peak_table(peaks: Sequence[PeakComparison]) -> str:
    ratios = column([one.peaks.ratio for one in peaks], unit=RATIO)
    rows = [
        (code(one.arm), code(one.baseline), str(len(one.peaks.arm)), ratio)
        for one, ratio in zip(peaks, ratios, strict=True)
    ]
    return table(("Arm", "Baseline", "Pairs", "Ratio of the fitted maxima"), rows, align="llrr")


def _class_table(rows: Sequence[ClassComparison], content: Content) -> str:
    """A row an arm and kind of prompt, a column a concurrency."""
    levels = sorted({row.concurrency for row in rows})
    entries = {
        (row.arm, row.prompt_class, row.concurrency): entry
        for row, entry in zip(rows, column([row.ratio for row in rows], unit=RATIO), strict=True)
    }
    names = dict.fromkeys((row.arm, row.prompt_class) for row in rows)
    cells = [
        (code(arm), kind_of_prompt(kind, content), *(entries.get((arm, kind, level), MISSING) for level in levels))
        for arm, kind in names
    ]
    header = ("Arm", "Kind of prompt", *(f"{level} at once" for level in levels))
    return table(header, cells, align="ll" + "r" * len(levels))


def _reached(saturation: Saturation) -> tuple[str, str]:
    if saturation.fit is None:
        return MISSING, MISSING
    if not saturation.saturated:
        return "not in this sweep", MISSING
    return _level(saturation.c_sat_point), _level(saturation.c_sat)


def _level(concurrency: float | None) -> str:
    return MISSING if concurrency is None else sentence(Reading(concurrency), unit=COUNT)
