"""Gate: may acceptance measured at one draft length be used at another?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kit.analysis import GateMovement, GateResidual, Gates
from kit.format import MISSING, PERCENT, SHARE, Reading, count, probability, sentence
from kit.report.entries import column, counted, points
from kit.report.escape import prose
from kit.report.table import table
from kit.stats import AlignmentCell, AlignmentGate, CurveCell, CurveGate, FunctionalError, Movement
from kit.verdict import GateSection

__all__ = ["GateView", "gate_view"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GateView:
    """Strings of the section; an empty table has its reason in the word above it."""

    sentence: str
    curve_use: str
    first_word: str
    first_margin: str
    first_table: str
    first_shown: str
    naive: str
    functional: str
    functional_table: str
    second_word: str
    second_margin: str
    second_table: str
    control: str
    movement_table: str
    residual_table: str


def gate_view(section: GateSection) -> GateView:
    """The section's strings."""
    gates = section.gates
    worst = _worst_curve_cells(gates.v1.cells)
    movements = [(row, row.movement) for row in gates.movements if row.movement is not None]
    return GateView(
        sentence=prose(section.sentence),
        curve_use=gates.reading.curve_oracle.value,
        first_word=_word(gates.v1),
        first_margin=sentence(Reading(gates.margin_1), unit=SHARE),
        first_table=_first_table(worst) if worst else "",
        first_shown=f"{counted(len(worst), 'row')} of {counted(len(gates.v1.cells), 'tested difference')}",
        naive=_naive(gates),
        functional=_functional(gates),
        functional_table=_functional_table(gates.v1.functional) if gates.v1.functional else "",
        second_word=_word(gates.v2),
        second_margin=sentence(Reading(gates.margin_2), unit=SHARE),
        second_table=_second_table(gates.v2) if gates.v2.cells or gates.v2.control else "",
        control=prose(gates.control),
        movement_table=_movement_table(movements) if movements else "",
        residual_table=_residual_table(_worst_residuals(gates.residuals)) if gates.residuals else "",
    )


def _word(gate: CurveGate | AlignmentGate) -> str:
    return f"**{gate.word.value}** ({prose(gate.reason)})" if gate.reason else f"**{gate.word.value}**"


def _worst(rows: Sequence[T], *, group: Callable[[T], Hashable], size: Callable[[T], float]) -> tuple[T, ...]:
    """Of each group the largest row, in the order of the groups; a table of everything would hide it."""
    found: dict[Hashable, T] = {}
    for row in rows:
        key = group(row)
        if key not in found or size(row) > size(found[key]):
            found[key] = row
    return tuple(found.values())


def _worst_curve_cells(cells: Sequence[CurveCell]) -> tuple[CurveCell, ...]:
    return _worst(cells, group=lambda c: (c.concurrency, c.K_a, c.K_b), size=lambda c: abs(c.difference.point or 0.0))


def _worst_aligned_cells(cells: Sequence[AlignmentCell]) -> tuple[AlignmentCell, ...]:
    return _worst(cells, group=lambda c: (c.concurrency, c.K_a, c.K_b), size=lambda c: c.bound or 0.0)


def _worst_residuals(rows: Sequence[GateResidual]) -> tuple[GateResidual, ...]:
    return _worst(
        rows,
        group=lambda row: (row.concurrency, row.residual.K_from, row.residual.K_to),
        size=lambda row: abs(row.residual.residual.point or 0.0),
    )


def _first_table(cells: Sequence[CurveCell]) -> str:
    differences = column([cell.difference for cell in cells], unit=SHARE)
    rows = [
        (
            str(cell.concurrency),
            _pair(cell),
            str(cell.k),
            count(cell.difference.n),
            difference,
            _yes(cell.inside),
            probability(cell.p_holm),
            MISSING if cell.n_needed is None else count(cell.n_needed),
        )
        for cell, difference in zip(cells, differences, strict=True)
    ]
    header = (
        "Requests at once",
        "K",
        "k",
        "Prompts",
        "Difference of S_k [90 %]",
        "Inside margin",
        "p (beyond margin)",
        "Prompts needed",
    )
    return table(header, rows, align="rlrrrlrr")


def _pair(cell: CurveCell | AlignmentCell) -> str:
    return f"{cell.K_a} against {cell.K_b}"


def _yes(inside: bool) -> str:
    return "yes" if inside else "no"


def _naive(gates: Gates) -> str:
    if gates.naive_passes is None:
        return ""
    tolerance = sentence(Reading(gates.legacy_tolerance), unit=SHARE)
    word = "would pass" if gates.naive_passes else "would fail"
    return f"The naive rule (points at most {tolerance} apart, no interval) {word}; it decides nothing."


def _functional(gates: Gates) -> str:
    limit = sentence(Reading(gates.functional_limit), unit=PERCENT)
    if not gates.v1.functional:
        return f"Reading the deepest curve at a smaller K must cost at most {limit}; there are no two K to test it on."
    word = "is shown to stay within" if gates.functional_within else "is not shown to stay within"
    return f"The error in tokens a round of reading the deepest curve at a smaller K {word} its limit of {limit}."


def _functional_table(errors: Sequence[FunctionalError]) -> str:
    pairs = [(error.concurrency, depth, estimate) for error in errors for depth, estimate in error.by_depth]
    shown = column([estimate for _, _, estimate in pairs], unit=PERCENT)
    rows = [(str(concurrency), str(depth), entry) for (concurrency, depth, _), entry in zip(pairs, shown, strict=True)]
    return table(("Requests at once", "Read at K", "Error of tokens a round, %"), rows, align="rrr")


def _second_table(gate: AlignmentGate) -> str:
    cells = (*_worst_aligned_cells(gate.cells), *_worst_aligned_cells(gate.control))
    differences = column([cell.d2 for cell in cells], unit=SHARE)
    bounds = points([cell.bound for cell in cells], unit=SHARE)
    shares = points([cell.aligned_share for cell in cells], unit=PERCENT)
    rows = [
        (
            str(cell.concurrency),
            _pair(cell) + (" (control)" if cell.K_a == cell.K_b else ""),
            str(cell.k),
            count(cell.d2.n),
            count(cell.sites),
            share,
            difference,
            bound,
            _yes(cell.inside),
        )
        for cell, difference, bound, share in zip(cells, differences, bounds, shares, strict=True)
    ]
    header = ("Requests at once", "K", "k", "Prompts", "Places", "Aligned, %", "Difference", "At most", "Inside")
    return table(header, rows, align="rlrrrrrrl")


def _movement_table(rows: Sequence[tuple[GateMovement, Movement]]) -> str:
    parts = [
        points(values, unit=SHARE)
        for values in zip(
            *((m.total, m.between_classes, m.within_classes, m.boundary, m.behaviour) for _, m in rows), strict=True
        )
    ]
    cells = [
        (str(row.concurrency), f"{row.depth_a} against {row.depth_b}", count(movement.sites), *shown)
        for (row, movement), *shown in zip(rows, *parts, strict=True)
    ]
    header = (
        "Requests at once",
        "K",
        "Places",
        "Movement of S_1",
        "Other kinds of prompt",
        "Other prompts of a kind",
        "Other round starts",
        "The draft itself",
    )
    return table(header, cells, align="rlrrrrrr")


def _residual_table(rows: Sequence[GateResidual]) -> str:
    residuals = column([row.residual.residual for row in rows], unit=SHARE)
    raw = column([row.residual.raw_difference for row in rows], unit=SHARE)
    cells = [
        (str(row.concurrency), str(row.residual.K_from), str(row.residual.K_to), str(row.residual.k), before, after)
        for row, before, after in zip(rows, raw, residuals, strict=True)
    ]
    header = ("Requests at once", "Curve of K", "Used at K", "k", "Difference of S_k", "Left after the conversion")
    return table(header, cells, align="rrrrrr")
