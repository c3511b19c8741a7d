"""Adaptive in force: which K the controller chose, how often it changed its mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import AdaptiveUse, DepthPace
from kit.format import SECONDS, Unit, count
from kit.report.entries import points
from kit.report.escape import code
from kit.report.table import Entry, table

__all__ = ["AdaptiveView", "adaptive_view"]

_WHOLE_SHARE = Unit("%", scale=100.0, fewest=1, most=1)
_A_SECOND = Unit("1/s", fewest=1, most=2)
_NO_SPAN = "one iteration has no duration"


@dataclass(frozen=True, slots=True)
class AdaptiveView:
    """Strings of the section; empty where there is nothing to say."""

    use_table: str
    pace_table: str


def adaptive_view(uses: Sequence[AdaptiveUse], paces: Sequence[DepthPace]) -> AdaptiveView:
    """The section's strings."""
    return AdaptiveView(_adaptive_table(uses) if uses else "", _pace_table(paces) if paces else "")


def _adaptive_table(uses: Sequence[AdaptiveUse]) -> str:
    depths = sorted({share.depth for use in uses for share in use.depths})
    shares = [_depth_shares(use, depths) for use in uses]
    paces = points([use.switches / use.seconds if use.seconds > 0 else None for use in uses], unit=_A_SECOND)
    rows = [
        (
            code(use.arm),
            str(use.launch),
            "whole launch" if use.concurrency is None else str(use.concurrency),
            count(use.iterations),
            count(use.switches),
            Entry(pace, _NO_SPAN if use.seconds <= 0 else None),
            "; ".join(f"K={depth}: {share} %" for depth, share in zip(depths, shown, strict=True)),
        )
        for use, pace, shown in zip(uses, paces, shares, strict=True)
    ]
    header = (
        "Arm",
        "Launch",
        "Requests at once",
        "Iterations",
        "Changes of K",
        "A second",
        "Share of iterations at each K",
    )
    return table(header, rows, align="lrlrrrl")


def _depth_shares(use: AdaptiveUse, depths: Sequence[int]) -> tuple[str, ...]:
    by_depth = {share.depth: share.iteration_share for share in use.depths}
    return points([by_depth.get(depth, 0.0) for depth in depths], unit=_WHOLE_SHARE)


def _pace_table(paces: Sequence[DepthPace]) -> str:
    dwells = points([pace.dwell_s for pace in paces], unit=SECONDS)
    rows = [
        (
            code(pace.arm),
            str(pace.launch),
            pace.source.value,
            count(pace.changes),
            count(pace.undone),
            Entry(dwell, "fewer than two changes" if pace.dwell_s is None else None),
            "; ".join(f"K={time.depth}: {share} %" for time, share in zip(pace.times, _time_shares(pace), strict=True)),
        )
        for pace, dwell in zip(paces, dwells, strict=True)
    ]
    header = ("Arm", "Launch", "By", "Changes of K", "Undid the last", "Mean s between", "Share of time at each K")
    return table(header, rows, align="lrlrrrl")


def _time_shares(pace: DepthPace) -> tuple[str, ...]:
    return points([time.share for time in pace.times], unit=_WHOLE_SHARE)
