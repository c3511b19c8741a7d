"""Doubts: every reason not to believe a number, where it applies, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import FlagClass, FlagDifference, Identities, Reconciliation, TraceHealth
from kit.checks import CellJudgement, CellState, Doubt, Scope, Severity
from kit.format import MISSING, count
from kit.report.entries import counted
from kit.report.escape import code, prose, text
from kit.report.table import table
from kit.verdict import DoubtsSection

__all__ = ["DoubtGroup", "DoubtsView", "doubts_view"]

MOST_PLACES = 6  # named one by one before the rest is only counted

_AGREE = "No disagreement was found between what client, server and trace count."
_EFFECT = {
    Severity.INVALID: "Not usable",
    Severity.UNKNOWN: "Not shown to be usable",
    Severity.DOUBT: "Doubt",
}


@dataclass(frozen=True, slots=True)
class DoubtGroup:
    """The same doubt at one or more places."""

    effect: str
    code: str
    where: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class DoubtsView:
    """Strings of the section."""

    states: str
    groups: tuple[DoubtGroup, ...]
    identities: tuple[str, ...]
    no_failure: str
    trace_table: str
    unfair_table: str
    intended_table: str


def doubts_view(section: DoubtsSection) -> DoubtsView:
    """The section's strings."""
    cells = {cell.cell: cell for cell in section.cells}
    unfair, intended = (
        [flag for flag in section.flag_differences if flag.flag_class is kind]
        for kind in (FlagClass.UNFAIR, FlagClass.INTENDED)
    )
    return DoubtsView(
        states=_states(section.cells),
        groups=_groups(section.doubts, cells),
        identities=tuple(line for row in section.identities for line in _failures(row)),
        no_failure=_AGREE if section.cells else "Nothing was counted.",
        trace_table=_trace_table(section.reconciliation, section.traces) if section.reconciliation else "",
        unfair_table=_flag_table(unfair) if unfair else "",
        intended_table=_flag_table(intended) if intended else "",
    )


def _states(cells: Sequence[CellJudgement]) -> str:
    if not cells:
        return "No cell was measured."
    tally = Counter(cell.state for cell in cells)
    parts = [f"{count(tally[state])} {state.value}" for state in CellState if tally[state]]
    return f"Of {counted(len(cells), 'cell')}: {', '.join(parts)}."


def _groups(doubts: Sequence[Doubt], cells: dict[int, CellJudgement]) -> tuple[DoubtGroup, ...]:
    """Doubts that differ only in their place become one, in the order of the first."""
    places: dict[tuple[Severity, str, str, str], list[str]] = {}
    for doubt in doubts:
        key = (doubt.severity, doubt.code.value, doubt.message, doubt.hint)
        places.setdefault(key, []).append(_place(doubt, cells))
    return tuple(
        DoubtGroup(_EFFECT[severity], code(name), _where(where, len(cells)), _sentence(message), _sentence(hint))
        for (severity, name, message, hint), where in places.items()
    )


def _place(doubt: Doubt, cells: dict[int, CellJudgement]) -> str:
    if doubt.scope is Scope.RUN:
        return "the whole run"
    if doubt.scope is Scope.ARM:
        return f"arm {code(doubt.arm or '?')}"
    if doubt.scope is Scope.LAUNCH:
        return f"launch {doubt.launch}" + (f" of {code(doubt.arm)}" if doubt.arm else "")
    cell = cells.get(doubt.cell) if doubt.cell is not None else None
    if cell is None:
        return f"cell {doubt.cell}"
    return f"cell {cell.cell} ({code(cell.arm)}, {cell.concurrency} at once, launch {cell.launch})"


def _where(places: Sequence[str], cells: int) -> str:
    if len(places) == cells > 1:
        return f"all {count(cells)} cells"
    rest = len(places) - MOST_PLACES
    return ", ".join(places[:MOST_PLACES]) + (f" and {count(rest)} more" if rest > 0 else "")


def _sentence(words: str) -> str:
    """The words as a sentence of their own."""
    line = prose(words)
    return line if not line or line[-1] in ".!?…" else f"{line}."


def _failures(row: Identities) -> list[str]:
    where = f"cell {row.cell} ({code(row.arm)}, {row.concurrency} at once)"
    return [
        f"{where}: {text(failure.identity)} fails {counted(failure.count, 'time')}, for example {code(failure.example)}"
        for failure in row.failures
    ]


def _trace_table(rows: Sequence[Reconciliation], traces: Sequence[TraceHealth]) -> str:
    health = {trace.launch: trace for trace in traces}
    cells = [
        (
            str(row.launch),
            code(row.arm),
            count(row.requests),
            count(row.exact),
            _health(health.get(row.launch)),
            "; ".join(f"{text(part.reason)}: {count(part.count)}" for part in row.reasons) or "none",
        )
        for row in rows
    ]
    header = ("Launch", "Arm", "Requests", "Reproduced exactly", "Trace", "Reasons of the others")
    return table(header, cells, align="rlrrll")


def _health(trace: TraceHealth | None) -> str:
    if trace is None:
        return MISSING
    faults = [(trace.gaps, "missing id"), (trace.reversals, "clock reversal")]
    found = [counted(number, noun) for number, noun in faults if number]
    return ", ".join(found) or f"whole, {counted(trace.iterations, 'iteration')}"


def _flag_table(flags: Sequence[FlagDifference]) -> str:
    """One row for each difference, with all the arms that share it."""
    arms: dict[tuple[str, str, str], list[str]] = {}
    for flag in flags:
        arms.setdefault((flag.flag, flag.baseline_value, flag.arm_value), []).append(flag.arm)
    cells = [
        (code(name), code(base, longest=80), code(value, longest=80), ", ".join(map(code, sharing)))
        for (name, base, value), sharing in arms.items()
    ]
    return table(("Setting", "Baseline has", "Arm has", "Arms"), cells, align="llll")
