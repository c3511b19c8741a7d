"""What a load switch could win: the best arm of every level, and what an adaptive arm realised of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import LoadSwitch
from kit.format import MISSING, PERCENT, RATIO
from kit.report.entries import column
from kit.report.escape import code
from kit.report.table import Entry, table
from kit.stats import Estimate

__all__ = ["SwitchView", "switch_view"]

_NO_ADAPTIVE = Estimate.missing("the spec has no adaptive arm")


@dataclass(frozen=True, slots=True)
class SwitchView:
    """Strings of the section; empty where there is nothing to say."""

    table: str
    conclusion: str


def switch_view(switches: Sequence[LoadSwitch]) -> SwitchView:
    """The section's strings."""
    return SwitchView(_table(switches) if switches else "", _conclusion(switches))


def _table(switches: Sequence[LoadSwitch]) -> str:
    rows = [(one, share) for one in switches for share in one.adaptive or (None,)]
    against = column([share.against_best if share else _NO_ADAPTIVE for _, share in rows], unit=RATIO)
    shares = column([share.realised if share else _NO_ADAPTIVE for _, share in rows], unit=PERCENT)
    ratios = column([one.ratio for one, _ in rows], unit=RATIO)
    cells: list[Sequence[str | Entry]] = [
        (
            str(one.concurrency),
            code(one.best) if one.best else f"none beats {code(one.baseline)}",
            ratio,
            code(share.arm) if share else MISSING,
            beside,
            realised,
        )
        for (one, share), ratio, beside, realised in zip(rows, ratios, against, shares, strict=True)
    ]
    ratio_head = "Its ratio to baseline"
    header = ("Requests at once", "Best fixed arm", ratio_head, "Adaptive arm", "Adaptive / best", "Realised, %")
    return table(header, cells, align="rlrlrr")


def _conclusion(switches: Sequence[LoadSwitch]) -> str:
    """Whether the best arm changes with the load: without that, a switch wins nothing over leaving it alone."""
    lines = []
    for baseline in dict.fromkeys(one.baseline for one in switches):
        best = [one.best or baseline for one in switches if one.baseline == baseline]
        names = ", ".join(map(code, dict.fromkeys(best)))
        if len(set(best)) == 1:
            lines.append(f"By point, {names} is best at every concurrency: a switch would win nothing over it.")
        else:
            lines.append(f"By point, the best arm changes with the load: {names}, in order of concurrency.")
    return " ".join(lines)
