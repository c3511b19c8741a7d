"""Two runs held against each other, as Markdown that stands alone and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kit.compare import ArmRatio, DepthTime, Factor, FieldDifference, RunComparison, Side, Tax
from kit.format import MISSING, RATIO, TOKENS_PER_SECOND, Unit, count
from kit.report.dump import as_json
from kit.report.entries import column, counted, level_in_words, points
from kit.report.escape import code, prose, text
from kit.report.flags import flag_words
from kit.report.page import templates, tidy
from kit.report.table import Entry, table
from kit.stats import Estimate, SpeedWord

__all__ = ["comparison_json", "render_comparison"]

_MS = Unit("ms", fewest=2, most=3)
_ITSELF = Estimate.missing("a baseline has no baseline")
_GAIN_WORDS = {
    SpeedWord.FASTER: "larger",
    SpeedWord.SLOWER: "smaller",
    SpeedWord.EQUIVALENT: "equivalent",
    SpeedWord.INCONCLUSIVE: "inconclusive",
}
_FACTORS = {
    Factor.BACKEND: "attention backend",
    Factor.SGLANG: "version of SGLang",
    Factor.DAY: "day",
    Factor.HOST: "host",
}


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Strings of the page; empty where there is nothing to say."""

    flags: str
    title: str
    factor: str
    answer: str
    sides: str
    first: str
    second: str
    upper: str
    lower: str
    level: str
    arms: str
    times: str
    taxes: str
    factor_fields: str
    consequences: str
    noted: str
    limits: tuple[str, ...]


def render_comparison(comparison: RunComparison) -> str:
    """The comparison as a Markdown document that ends in one newline."""
    return tidy(templates().get_template("comparison.md.j2").render(v=_view(comparison)))


def comparison_json(comparison: RunComparison) -> str:
    """The comparison as one JSON object, `schema_version` first, every number in full."""
    tree = as_json(comparison, path="comparison")
    assert isinstance(tree, dict)  # a dataclass
    return json.dumps({"schema_version": tree.pop("version")} | tree, indent=2, allow_nan=False) + "\n"


def _view(comparison: RunComparison) -> ComparisonView:
    first, second = comparison.first, comparison.second
    lower, upper = points((1 - comparison.noise_threshold, 1 + comparison.noise_threshold), unit=RATIO)
    return ComparisonView(
        flags=" · ".join(_flags(side) for side in (first, second)),
        title=f"{text(second.label)} against {text(first.label)}",
        factor=_FACTORS[comparison.factor],
        answer=prose(comparison.answer),
        sides=_sides((first, second)),
        first=text(first.label),
        second=text(second.label),
        upper=upper,
        lower=lower,
        level=level_in_words(comparison.level),
        arms=_arms(comparison) if comparison.arms else "",
        times=_times(comparison) if comparison.depth_times else "",
        taxes=_taxes(comparison) if comparison.taxes else "",
        factor_fields=_fields(comparison.factor_fields, comparison),
        consequences=_consequences(comparison) if comparison.consequences else "",
        noted=_fields(comparison.noted, comparison),
        limits=tuple(map(prose, comparison.limits)),
    )


def _flags(side: Side) -> str:
    return f"{text(side.label)}: **{flag_words(side.headings)}**"


def _sides(sides: Sequence[Side]) -> str:
    rows = [
        (
            name,
            text(side.label),
            code(side.run_id),
            text(side.created_utc),
            code(side.spec_hash),
            f"{side.valid} of {counted(side.cells, 'cell')}",
            *("not sampled" if value is None else f"{value:.0f}" for value in (side.sm_mhz, side.temperature_c)),
        )
        for name, side in zip(("first", "second"), sides, strict=True)
    ]
    return table(
        ("Run", "Called", "Run id", "Created", "Spec, SHA-256", "Valid", "SM clock, MHz", "°C"), rows, align="llllllrr"
    )


def _arms(comparison: RunComparison) -> str:
    rows = comparison.arms
    columns: tuple[Sequence[str | Entry], ...] = (
        column([one.first_tok_s for one in rows], unit=TOKENS_PER_SECOND),
        column([one.second_tok_s for one in rows], unit=TOKENS_PER_SECOND),
        column([one.ratio for one in rows], unit=RATIO),
        [f"**{one.word.value}**" for one in rows],
        _own(column([one.gain or _ITSELF for one in rows], unit=RATIO)),
        [_gain_word(one) for one in rows],
        column([one.tpot_ratio for one in rows], unit=RATIO),
    )
    cells = [(code(one.arm), str(one.concurrency), *shown) for one, *shown in zip(rows, *columns, strict=True)]
    header = (
        "Arm",
        "Requests at once",
        f"{text(comparison.first.label)}, tok/s",
        f"{text(comparison.second.label)}, tok/s",
        "Ratio",
        "Word",
        "Ratio of gains",
        "Gain",
        "TPOT ratio",
    )
    return table(header, cells, align="lrrrrlrlr")


def _gain_word(one: ArmRatio) -> str:
    return f"**{_GAIN_WORDS[one.gain_word]}**" if one.gain_word else MISSING


def _own(entries: Sequence[Entry]) -> list[Entry]:
    """A baseline has no gain by nature: a dash without a note is enough."""
    return [Entry(entry.text) if entry.reason == _ITSELF.reason else entry for entry in entries]


def _times(comparison: RunComparison) -> str:
    rows = comparison.depth_times
    columns: tuple[Sequence[str | Entry], ...] = (
        [count(one.iterations) for one in rows],
        column([one.first_ms for one in rows], unit=_MS),
        column([one.second_ms for one in rows], unit=_MS),
        column([one.ratio for one in rows], unit=RATIO),
        _own(column([one.first_stretch or _ITSELF for one in rows], unit=RATIO)),
        _own(column([one.second_stretch or _ITSELF for one in rows], unit=RATIO)),
    )
    cells = [
        (code(one.arm), _depth(one), str(one.batch_size), *shown) for one, *shown in zip(rows, *columns, strict=True)
    ]
    first, second = text(comparison.first.label), text(comparison.second.label)
    header = (
        "Arm",
        "K in force",
        "Batch",
        "Iterations",
        f"{first}, ms",
        f"{second}, ms",
        "Ratio",
        f"Times the baseline's, {first}",
        f"Times the baseline's, {second}",
    )
    return table(header, cells, align="lrrrrrrrr")


def _depth(one: DepthTime) -> str:
    return "none" if one.depth is None else str(one.depth)


def _taxes(comparison: RunComparison) -> str:
    rows: Sequence[Tax] = comparison.taxes
    columns = (
        column([one.first_ms for one in rows], unit=_MS),
        column([one.second_ms for one in rows], unit=_MS),
        column([one.difference_ms for one in rows], unit=_MS),
        column([one.ratio for one in rows], unit=RATIO),
        column([one.first_per_draft_ms for one in rows], unit=_MS),
        column([one.second_per_draft_ms for one in rows], unit=_MS),
        column([one.per_draft_ratio for one in rows], unit=RATIO),
    )
    cells = [
        (str(one.batch_size), ", ".join(map(str, one.depths)), *shown)
        for one, *shown in zip(rows, *columns, strict=True)
    ]
    first, second = text(comparison.first.label), text(comparison.second.label)
    header = (
        "Batch",
        "K",
        f"Tax, {first}, ms",
        f"Tax, {second}, ms",
        "Difference, ms",
        "Ratio",
        f"Each draft, {first}, ms",
        f"Each draft, {second}, ms",
        "Ratio",
    )
    return table(header, cells, align="rlrrrrrrr")


def _fields(fields: Sequence[FieldDifference], comparison: RunComparison) -> str:
    if not fields:
        return ""
    rows = [(code(one.field), code(one.first), code(one.second)) for one in fields]
    return table(("Field", text(comparison.first.label), text(comparison.second.label)), rows, align="lll")


def _consequences(comparison: RunComparison) -> str:
    """Flags by name; an arm has its own row only where its values are its own."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in comparison.consequences:
        found.setdefault((one.flag, one.first, one.second), []).append(one.arm)
    rows = [
        (code(flag), ", ".join(map(code, arms)), code(first), code(second))
        for (flag, first, second), arms in found.items()
    ]
    header = ("Flag", "Arms", text(comparison.first.label), text(comparison.second.label))
    return table(header, rows, align="llll")
