"""Oracle: how much a better choice of K could gain, where the gates allow it to be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import Oracle, OracleKind, OracleLevel
from kit.format import MISSING, PERCENT, count
from kit.report.entries import column, defined
from kit.report.escape import prose
from kit.report.table import Entry, table
from kit.stats import Disclosure, Estimate, OracleGaps

__all__ = ["OracleView", "oracle_view"]

_NAMES = {
    OracleKind.CURVE: "Curve oracle (reads every K off the curve of the largest)",
    OracleKind.REPLAY: "Replay oracle (takes every K from its own capture of the same requests; secondary)",
}


@dataclass(frozen=True, slots=True)
class OracleView:
    """Strings of the section, one line or table a kind of oracle."""

    gap: str
    parts: tuple[str, ...]
    explained: bool


def oracle_view(oracles: Sequence[Oracle]) -> OracleView:
    """The section's strings."""
    return OracleView(
        gap=defined("oracle_gap"),
        parts=tuple(_part(oracle) for oracle in oracles),
        explained=any(oracle.levels for oracle in oracles),
    )


def _part(oracle: Oracle) -> str:
    name = _NAMES[oracle.kind]
    if oracle.reason or not oracle.levels:
        return f"**{name}**: not reported. {_sentence(oracle.reason or 'no concurrency was measured')}"
    flag = " Flagged: that drafts are the same at equal positions is not shown." if _flagged(oracle) else ""
    depths = ", ".join(map(str, oracle.depths))
    return f"**{name}**: K chosen among {depths}.{flag}\n\n{_table(oracle.levels)}"


def _sentence(reason: str) -> str:
    return prose(reason[0].upper() + reason[1:] + ".")


def _flagged(oracle: Oracle) -> bool:
    return oracle.disclosure is Disclosure.FLAGGED


def _table(levels: Sequence[OracleLevel]) -> str:
    gaps = [
        column([_gap(level, name) for level in levels], unit=PERCENT)
        for name in ("scalar_over_static", "curve_over_scalar", "ragged_over_curve")
    ]
    rows = [
        (str(level.concurrency), _batches(level.gaps), *shown, _zero(level.gaps))
        for level, *shown in zip(levels, *gaps, strict=True)
    ]
    header = (
        "Requests at once",
        "Batches",
        "Scalar over one K, %",
        "Curve over scalar, %",
        "A K for each request, %",
        "Curve adds less than 1 %",
    )
    return table(header, rows, align="rrrrrl")


def _gap(level: OracleLevel, name: str) -> Estimate:
    if level.gaps is None:
        return Estimate.missing(level.reason or "not computed")
    gap: Estimate = getattr(level.gaps, name)
    return gap


def _batches(gaps: OracleGaps | None) -> str:
    return MISSING if gaps is None else count(gaps.batches)


def _zero(gaps: OracleGaps | None) -> Entry:
    if gaps is None or gaps.curve_over_scalar.interval is None:
        return Entry(MISSING)
    return Entry("shown" if gaps.is_zero(gaps.curve_over_scalar) else "not shown")
