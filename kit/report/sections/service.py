"""Service: requests within the spec's limits, and load that arrived by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import ServiceLevel
from kit.format import MILLISECONDS, PERCENT, RATIO, TOKENS_PER_SECOND, count
from kit.report.entries import column, defined
from kit.report.escape import code, prose
from kit.report.table import Entry, table

__all__ = ["ServiceView", "service_view"]


@dataclass(frozen=True, slots=True)
class ServiceView:
    """Strings of the section; a table is empty where the spec does not ask for it."""

    within: str
    goodput: str
    limits: str
    closed: str
    offered: str
    left_out: tuple[str, ...]


def service_view(levels: Sequence[ServiceLevel], *, limits: str) -> ServiceView:
    """The section's strings."""
    closed = [level for level in levels if level.per_second is None]
    offered = [level for level in levels if level.per_second is not None]
    return ServiceView(
        within=defined("within_limits"),
        goodput=defined("goodput"),
        limits=prose(limits),
        closed=_closed(closed) if closed else "",
        offered=_offered(offered) if offered else "",
        left_out=tuple(f"{_place(level)}: {prose('; '.join(level.left_out))}" for level in levels if level.left_out),
    )


def _place(level: ServiceLevel) -> str:
    where = f"{level.concurrency} at once" if level.per_second is None else f"{level.per_second:g} offered a second"
    return f"{code(level.arm)}, {where}"


def _closed(rows: Sequence[ServiceLevel]) -> str:
    columns: tuple[Sequence[str | Entry], ...] = (
        column([row.within for row in rows], unit=PERCENT),
        column([row.goodput for row in rows], unit=RATIO),
    )
    cells = [
        (code(row.arm), str(row.concurrency), str(row.launches), count(row.requests), *shown)
        for row, *shown in zip(rows, *columns, strict=True)
    ]
    header = ("Arm", "At once", "Launches", "Requests", "Within the limits, %", "Good requests a second")
    return table(header, cells, align="lrrrrr")


def _offered(rows: Sequence[ServiceLevel]) -> str:
    columns: tuple[Sequence[str | Entry], ...] = (
        [f"{row.saturated} of {row.launches}" if row.saturated else "no" for row in rows],
        column([row.completed_per_s for row in rows], unit=RATIO),
        column([row.throughput for row in rows], unit=TOKENS_PER_SECOND),
        column([row.ttft_s for row in rows], unit=MILLISECONDS),
        column([row.ttft_p99_s for row in rows], unit=MILLISECONDS),
        column([row.tpot_s for row in rows], unit=MILLISECONDS),
        column([row.e2e_p99_s for row in rows], unit=MILLISECONDS),
        column([row.within for row in rows], unit=PERCENT),
        column([row.goodput for row in rows], unit=RATIO),
    )
    cells = [(code(row.arm), f"{row.per_second:g}", *shown) for row, *shown in zip(rows, *columns, strict=True)]
    header = (
        *("Arm", "Offered a second", "Saturated", "Completed a second", "Throughput, tok/s", "TTFT, ms"),
        *("TTFT p99, ms", "TPOT, ms", "End to end p99, ms", "Within the limits, %", "Good requests a second"),
    )
    return table(header, cells, align="lrlrrrrrrrr")
