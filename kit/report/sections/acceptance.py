"""Acceptance: how many drafts the target model keeps, position by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kit.analysis import Acceptance
from kit.format import MISSING, SHARE, Reading, Unit, aligned, count
from kit.report.entries import column, counted, defined
from kit.report.escape import code, prose
from kit.report.flags import kind_of_prompt
from kit.report.table import Entry, table
from kit.stats import AdaptiveDepth, Convention
from kit.verdict import Content

__all__ = ["AcceptanceTable", "AcceptanceView", "acceptance_view"]

WIDEST = 6  # arms side by side
_TAU = Unit("", fewest=2)
_CONVENTIONS = {
    Convention.UNTRUNCATED: "the server counts a finishing round in full, so every round is complete",
    Convention.TRUNCATED: "the server cuts a finishing round before counting it, so the last round of a request is cut",
    Convention.UNKNOWN: "no request ended inside a round, so it cannot be seen whether finishing rounds are cut",
    Convention.INCONSISTENT: "finishing rounds are counted in two ways in one run",
}


@dataclass(frozen=True, slots=True)
class AcceptanceTable:
    """One concurrency, up to six arms side by side."""

    concurrency: str
    table: str


@dataclass(frozen=True, slots=True)
class AcceptanceView:
    """Strings of the section."""

    survival: str
    length: str
    per_position: str
    tables: tuple[AcceptanceTable, ...]
    bounds: str
    untraced: str
    tree: str
    conventions: tuple[str, ...]
    dropped: tuple[str, ...]
    class_level: str
    class_table: str


def acceptance_view(rows: Sequence[Acceptance], content: Content) -> AcceptanceView:
    """The section's strings. Kinds of prompt are shown at the concurrency that has most rounds."""
    fullest = max(rows, key=lambda row: row.rounds).concurrency if rows else 0
    return AcceptanceView(
        survival=defined("survival"),
        length=defined("acceptance_length"),
        per_position=defined("tokens_per_position"),
        tables=tuple(_tables(rows)),
        bounds=_BOUNDS if any(row.adaptive for row in rows) else "",
        untraced=_untraced(rows),
        tree=_TREE if any(row.topk > 1 for row in rows) else "",
        conventions=tuple(_CONVENTIONS[c] for c in dict.fromkeys(row.convention for row in rows)),
        dropped=tuple(_dropped(row) for row in rows if row.dropped),
        class_level=counted(fullest, "request"),
        class_table=_class_table(rows, content, level=fullest) if any(row.classes for row in rows) else "",
    )


_BOUNDS = (
    "An adaptive arm changes K while it runs, and a round at a small K never tries the deeper positions. What it would "
    "have accepted there is unknown; from the second position on the table gives the lowest and highest share that the "
    "data allow, written as low to high, and in brackets an interval around both ends."
)
_TREE = "For an arm that drafts a tree, k is the depth in the tree, not a place in one chain."


def _untraced(rows: Sequence[Acceptance]) -> str:
    """Which adaptive arms are bounded by their histograms alone."""
    arms = dict.fromkeys(row.arm for row in rows if any(bound.at_risk is None for bound in row.bounds))
    if not arms:
        return ""
    names = ", ".join(map(code, arms))
    return (
        f"No trace tells which K the rounds of {names} ran at. Its bounds rest on the K that the controller may choose "
        "and are wider for it; a curve read off its histogram would be the lowest of what is possible."
    )


def _tables(rows: Sequence[Acceptance]) -> Iterable[AcceptanceTable]:
    for concurrency in sorted({row.concurrency for row in rows}):
        here = [row for row in rows if row.concurrency == concurrency]
        for start in range(0, len(here), WIDEST):
            shown = here[start : start + WIDEST]
            yield AcceptanceTable(counted(concurrency, "request"), _table(shown))


def _table(rows: Sequence[Acceptance]) -> str:
    deepest = max(max(len(row.survival), *(b.k for b in row.bounds), 0) for row in rows)
    columns = [_arm_column(row, deepest) for row in rows]
    labels = [f"S_{k}" for k in range(1, deepest + 1)]
    labels += ["Tokens a round", "Tokens a verified position", "Requests", "Rounds"]
    header = ("", *(code(row.arm) for row in rows))
    return table(header, list(zip(labels, *columns, strict=True)), align="l" + "r" * len(rows))


def _arm_column(row: Acceptance, deepest: int) -> list[str | Entry]:
    survival = column(row.survival, unit=SHARE)
    bounds = {bound.k: bound for bound in row.bounds}
    cells: list[str | Entry] = [
        survival[k - 1] if k <= len(survival) else _bounds(bounds.get(k)) for k in range(1, deepest + 1)
    ]
    cells += column([row.acceptance_length], unit=_TAU)
    cells += column([row.tokens_per_position], unit=SHARE)
    return [*cells, count(row.requests), count(row.rounds)]


def _bounds(depth: AdaptiveDepth | None) -> str:
    """Lowest and highest share, then the interval around both."""
    if depth is None or depth.lower.point is None or depth.upper.point is None:
        return MISSING
    low, high = depth.lower.interval, depth.upper.interval
    lower, upper = aligned([Reading(depth.lower.point), Reading(depth.upper.point)], unit=SHARE)
    if low is None or high is None:
        return f"{lower} to {upper}"
    lowest, highest = aligned([Reading(low.lo), Reading(high.hi)], unit=SHARE)
    return f"{lower} to {upper} [{lowest}, {highest}]"


def _dropped(row: Acceptance) -> str:
    reasons = "; ".join(prose(reason) for reason in row.dropped_reasons) or "no reason recorded"
    where = f"{code(row.arm)} at {counted(row.concurrency, 'request')}"
    return f"{where}: {counted(row.dropped, 'request')} left out ({reasons})"


def _class_table(rows: Sequence[Acceptance], content: Content, *, level: int) -> str:
    pairs = [(row, part) for row in rows if row.concurrency == level for part in row.classes]
    lengths = column([part.acceptance_length for _, part in pairs], unit=_TAU)
    firsts = column([part.survival_1 for _, part in pairs], unit=SHARE)
    cells = [
        (code(row.arm), kind_of_prompt(part.prompt_class, content), count(part.prompts), first, length)
        for (row, part), first, length in zip(pairs, firsts, lengths, strict=True)
    ]
    header = ("Arm", "Kind of prompt", "Prompts", "S_1", "Tokens a round")
    return table(header, cells, align="llrrr")
