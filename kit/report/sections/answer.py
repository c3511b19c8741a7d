"""Verdict: the sentence to act on, the rule behind it, and a table for each concurrency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kit.analysis import ArmSummary, Comparison, LevelResult
from kit.format import MILLISECONDS, MISSING, RATIO, TOKENS_PER_SECOND
from kit.report.entries import column, counted, defined, level_in_words, points
from kit.report.escape import code, prose, text
from kit.report.table import Entry, table
from kit.stats import Estimate
from kit.verdict import ComparisonVerdict, Heading, SpeedSection, Verdict, WhatRan

__all__ = ["AnswerView", "LevelTable", "answer_view"]

_NOT_MEASURED = Estimate.missing("no valid cell at this concurrency")
_IS_BASELINE = Estimate.missing("the baseline is what the others are divided by")
_TOLERANCE_RULE = (
    "The spec names a loss that it can live with: a ratio is *tolerable* if its whole interval stays above that."
)
_TOLERANCE = {None: "", True: ", tolerable", False: ", not shown tolerable"}


@dataclass(frozen=True, slots=True)
class LevelTable:
    """One concurrency, all arms."""

    concurrency: str
    table: str


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Strings of the section."""

    answer: str
    arms: tuple[str, ...]
    level: str
    throughput: str
    whole_run: str
    tpot: str
    ratio: str
    metric: str
    upper: str
    lower: str
    multiplicity: str
    tolerance: str
    spec_hash: str
    registration: str
    tables: tuple[LevelTable, ...]
    controls: str


def answer_view(verdict: Verdict) -> AnswerView:
    """The section's strings."""
    speed = verdict.speed
    lower, upper = points((1 - speed.noise_threshold, 1 + speed.noise_threshold), unit=RATIO)
    return AnswerView(
        answer=prose(verdict.answer),
        arms=tuple(dict.fromkeys(f"**{text(arm.word.value)}**: {prose(arm.sentence)}" for arm in speed.arms)),
        level=level_in_words(speed.level),
        throughput=defined(speed.metric),
        whole_run=defined("output_throughput_full_run"),
        tpot=defined("tpot_s"),
        ratio=defined("speed_ratio"),
        metric=text(speed.metric),
        upper=upper,
        lower=lower,
        multiplicity=_multiplicity(speed),
        tolerance=_TOLERANCE_RULE if any(c.tolerable is not None for c in speed.comparisons) else "",
        spec_hash=code(verdict.what_ran.spec_hash),
        registration=_registration(verdict.what_ran, verdict.headings),
        tables=tuple(_level_tables(speed, verdict.what_ran.arms)),
        controls=_controls(speed),
    )


def _multiplicity(speed: SpeedSection) -> str:
    if speed.candidate:
        return (
            f"The spec names {code(speed.candidate)} as the candidate before the run, so its words carry no "
            "correction for the other arms."
        )
    if speed.holm and len(speed.comparisons) > 1:
        return (
            f"There are {counted(len(speed.comparisons), 'comparison')}, and among many a lucky one is likely; "
            "Holm's correction therefore asks more of each."
        )
    return ""


def _registration(ran: WhatRan, headings: Sequence[Heading]) -> str:
    commit = f"commit {code(ran.spec_commit)}" if ran.spec_commit else "no commit"
    when = f" of {text(ran.spec_committed_utc)}" if ran.spec_commit and ran.spec_committed_utc else ""
    if Heading.NOT_PRE_REGISTERED in headings:
        return f"It is not shown to be older than the first request ({commit}{when})."
    return f"It was fixed before the first request ({commit}{when})."


def _level_tables(speed: SpeedSection, arms: Sequence[ArmSummary]) -> Iterable[LevelTable]:
    for concurrency in sorted({level.concurrency for level in speed.levels}):
        levels = {level.arm: level for level in speed.levels if level.concurrency == concurrency}
        words = {c.comparison.arm: c for c in speed.comparisons if c.comparison.concurrency == concurrency}
        yield LevelTable(counted(concurrency, "request"), _level_table(arms, levels, words))


def _level_table(
    arms: Sequence[ArmSummary], levels: dict[str, LevelResult], words: dict[str, ComparisonVerdict]
) -> str:
    shown = [levels.get(arm.name) for arm in arms]
    speeds = [level.throughput_window if level else _NOT_MEASURED for level in shown]
    throughput = column(speeds, unit=TOKENS_PER_SECOND)
    whole = column([level.throughput_full_run if level else _NOT_MEASURED for level in shown], unit=TOKENS_PER_SECOND)
    tpot = column([level.tpot_s if level else _NOT_MEASURED for level in shown], unit=MILLISECONDS)
    ratio = column([_ratio(arm, words.get(arm.name)) for arm in arms], unit=RATIO)
    launches = [str(level.launches) if level else "0" for level in shown]
    verdicts = [_word(arm, words.get(arm.name)) for arm in arms]
    names = [code(arm.name) for arm in arms]
    return table(
        ("Arm", "Launches", "Throughput, tok/s", "Whole run, tok/s", "TPOT, ms", "Ratio to baseline", "Word"),
        list(zip(names, launches, throughput, whole, tpot, map(_without_base_note, ratio), verdicts, strict=True)),
        align="lrrrrrl",
    )


def _ratio(arm: ArmSummary, word: ComparisonVerdict | None) -> Estimate:
    if word is not None:
        return word.comparison.ratio
    return _IS_BASELINE if arm.baseline is None else _NOT_MEASURED


def _without_base_note(entry: Entry) -> Entry:
    """A baseline has no ratio by nature: a dash without a note is enough."""
    return Entry(entry.text) if entry.reason == _IS_BASELINE.reason else entry


def _word(arm: ArmSummary, word: ComparisonVerdict | None) -> Entry:
    if word is not None:
        return Entry(f"**{word.word.value}**{_TOLERANCE[word.tolerable]}", word.reason)
    return Entry("baseline" if arm.baseline is None else MISSING)


def _controls(speed: SpeedSection) -> str:
    rows = [("same baseline, second launch", c) for c in speed.aa_speed]
    rows += [("same baseline, end of the run", c) for c in speed.closing]
    return _control_table(rows) if rows else ""


def _control_table(rows: Sequence[tuple[str, Comparison]]) -> str:
    ratios = column([c.ratio for _, c in rows], unit=RATIO)
    cells = [
        (name, code(c.arm), str(c.concurrency), str(len(c.blocks)), ratio)
        for (name, c), ratio in zip(rows, ratios, strict=True)
    ]
    return table(("Control", "Arm", "Requests at once", "Pairs", "Ratio"), cells, align="llrrr")
