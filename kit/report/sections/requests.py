"""How requests differ, and whether a curve belongs to its request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import CurveOwnership, Heterogeneity, RequestSpread
from kit.format import PERCENT, RATIO, count
from kit.report.entries import column, defined
from kit.report.escape import code, prose, text
from kit.report.table import Entry, table

__all__ = ["RequestsView", "requests_view"]


@dataclass(frozen=True, slots=True)
class RequestsView:
    """Strings of the section; `owned_reason` says why there is no second table."""

    spread: str
    reliability: str
    table: str
    owned: str
    owned_reason: str


def requests_view(found: Heterogeneity) -> RequestsView:
    """The section's strings."""
    return RequestsView(
        spread=defined("spread_between"),
        reliability=defined("split_half"),
        table=_table(found.spreads) if found.spreads else "",
        owned=_owned(found.ownerships) if found.ownerships else "",
        owned_reason=prose(found.ownership_reason or ""),
    )


def _table(rows: Sequence[RequestSpread]) -> str:
    columns = (
        column([row.spread.sd_between for row in rows], unit=RATIO),
        column([row.within_wave for row in rows], unit=RATIO),
        column([row.spread.icc for row in rows], unit=PERCENT),
        _class_ratios(rows),
        column([row.split_half for row in rows], unit=RATIO),
    )
    cells = [
        (code(row.arm), str(row.concurrency), count(row.prompts), *shown)
        for row, *shown in zip(rows, *columns, strict=True)
    ]
    header = (
        "Arm",
        "Requests at once",
        "Prompts",
        "Spread",
        "Spread in a wave",
        "Share of all variation, %",
        "Easiest kind / hardest",
        "Split-half",
    )
    return table(header, cells, align="lrrrrrrr")


def _class_ratios(rows: Sequence[RequestSpread]) -> list[Entry]:
    ratios = column([row.class_ratio for row in rows], unit=RATIO)
    return [
        Entry(f"{ratio.text} ({text(row.easiest)} / {text(row.hardest)})", ratio.reason)
        if row.easiest is not None and row.hardest is not None
        else ratio
        for row, ratio in zip(rows, ratios, strict=True)
    ]


def _owned(rows: Sequence[CurveOwnership]) -> str:
    columns: tuple[Sequence[str | Entry], ...] = (
        column([row.ownership.across for row in rows], unit=RATIO),
        column([row.ownership.disattenuated for row in rows], unit=RATIO),
        column([row.ownership.across_within_class for row in rows], unit=RATIO),
        ["yes" if row.ownership.belongs_to_request else "not shown" for row in rows],
    )
    cells = [
        (str(row.concurrency), f"{row.depth_a} against {row.depth_b}", count(row.prompts), *shown)
        for row, *shown in zip(rows, *columns, strict=True)
    ]
    header = (
        "Requests at once",
        "K",
        "Prompts",
        "Across halves and K",
        "Without the noise of halves",
        "Within a kind of prompt",
        "Belongs to the request",
    )
    return table(header, cells, align="rlrrrrl")
