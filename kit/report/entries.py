"""Estimates to table cells: point and interval with one precision a column, the reason beside whatever is missing."""

from __future__ import annotations

from collections.abc import Sequence

from kit.format import Reading, Unit, aligned, count, sentence
from kit.metrics import metric
from kit.report.escape import prose
from kit.report.table import Entry
from kit.stats import Estimate

__all__ = ["column", "counted", "defined", "in_words", "level_in_words", "points", "reading"]


def reading(estimate: Estimate) -> Reading:
    """What is printed of an estimate."""
    interval = estimate.interval
    if interval is None:
        return Reading(estimate.point)
    return Reading(estimate.point, interval.lo, interval.hi)


def column(estimates: Sequence[Estimate], *, unit: Unit) -> tuple[Entry, ...]:
    """The estimates of one column, aligned; each missing point or interval brings its reason."""
    texts = aligned([reading(estimate) for estimate in estimates], unit=unit)
    pairs = zip(texts, estimates, strict=True)
    return tuple(Entry(text, None if estimate.interval else estimate.reason) for text, estimate in pairs)


def points(values: Sequence[float | None], *, unit: Unit) -> tuple[str, ...]:
    """Plain numbers of one column, aligned."""
    return aligned([Reading(value) for value in values], unit=unit)


def in_words(estimate: Estimate, *, unit: Unit) -> str:
    """An estimate inside a sentence, with its unit, its count, and its reason where one is due."""
    shown = sentence(reading(estimate), unit=unit)
    return f"{shown} ({prose(estimate.reason)})" if estimate.reason and estimate.interval is None else shown


def defined(tag: str) -> str:
    """How the metric of that tag is made, from the one table of metrics."""
    return prose(metric(tag).formula)


def level_in_words(level: float) -> str:
    """A confidence level, e.g. "95 %"."""
    return f"{round(100 * level, 2):g} %"


def counted(number: int, noun: str) -> str:
    """A count with its noun, e.g. "1 launch", "3 launches"."""
    plural = noun + ("es" if noun.endswith(("s", "ch", "x")) else "s")
    return f"{count(number)} {noun if number == 1 else plural}"
