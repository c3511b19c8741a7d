"""Acceptance over the position in the draft, one panel a concurrency; bounds instead of points for adaptive arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.analysis import Acceptance
from kit.format import SHARE, Reading, aligned
from kit.report.figures.picture import Picture
from kit.report.figures.style import Look, Series, draw_series, house_style, looks, picture
from kit.stats import Estimate
from kit.verdict import Verdict

__all__ = ["acceptance_figure"]

MOST_PANELS = 4


def acceptance_figure(verdict: Verdict) -> Picture | None:
    """S_k of every speculating arm; None when no position has a number."""
    rows = [row for row in verdict.acceptance if any(first.point is not None for first in _first(row))]
    if not rows:
        return None
    levels = _chosen(sorted({row.concurrency for row in rows}))
    with house_style():
        figure = Figure(figsize=(max(7.2, 2.5 * len(levels) + 0.8), 3.9), layout="constrained")
        figure.suptitle("Drafts kept, by position", x=0.01, ha="left", size=11, weight="bold")
        panels = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
        styles = looks(verdict.what_ran.arms)
        for axes, level in zip(panels, levels, strict=True):
            _draw(axes, [row for row in rows if row.concurrency == level], styles)
            axes.set_title(f"{level} at once", weight="normal", size=9.5)
        panels[0].set_ylim(0, 1.06 * max(_heights(rows)))  # shared by every panel
        panels[0].set_ylabel("S_k, share of verify rounds")
        handles, labels = _keys(panels)
        figure.legend(handles, labels, loc="outside lower center", ncols=6 if len(levels) > 2 else 4)
        return picture(figure, _alt(rows))


def _first(row: Acceptance) -> tuple[Estimate, ...]:
    """What is known of the first position: its share, or the bounds of it."""
    return row.survival[:1] or tuple(bound.lower for bound in row.bounds[:1])


def _heights(rows: Sequence[Acceptance]) -> Iterator[float]:
    """Every height that a panel must show, at least a tenth."""
    yield 0.1
    for row in rows:
        for estimate in (*row.survival, *(bound.upper for bound in row.bounds[len(row.survival) :])):
            yield estimate.interval.hi if estimate.interval else estimate.point or 0.0


def _chosen(levels: Sequence[int]) -> list[int]:
    """Every level, or the first, the last and some between when there are too many for panels."""
    if len(levels) <= MOST_PANELS:
        return list(levels)
    last = len(levels) - 1
    return [levels[round(i * last / (MOST_PANELS - 1))] for i in range(MOST_PANELS)]


def _draw(axes: Axes, rows: Sequence[Acceptance], styles: dict[str, Look]) -> None:
    for position, row in enumerate(rows):
        look, shift = styles[row.arm], 0.09 * (position - (len(rows) - 1) / 2)
        xs = [k + shift for k in range(1, len(row.survival) + 1)]
        if row.survival:
            draw_series(axes, Series(xs, row.survival, [e.interval is None for e in row.survival], look))
        axes.plot([], [], color=look.colour, linestyle=look.line, marker=look.marker, label=look.name)
        _draw_bounds(axes, row, look, shift)
    deepest = max(max(len(row.survival), *(bound.k for bound in row.bounds), 1) for row in rows)
    axes.set_xticks(range(1, deepest + 1))
    axes.set_xlim(0.5, deepest + 0.5)
    axes.set_xlabel("Position k in the draft")


def _draw_bounds(axes: Axes, row: Acceptance, look: Look, shift: float) -> None:
    """A broad bar from the lowest to the highest share that the data allow, where the arm has no point."""
    unseen = row.bounds[len(row.survival) :]
    if unseen:
        axes.plot([], [], color=look.colour, linewidth=5, alpha=0.45, label=f"{look.name}: lowest to highest possible")
    for bound in unseen:
        if bound.lower.point is not None and bound.upper.point is not None:
            x = bound.k + shift
            axes.plot(
                [x, x],
                [bound.lower.point, bound.upper.point],
                color=look.colour,
                linewidth=5,
                alpha=0.45,
                solid_capstyle="butt",
                zorder=1,
            )


def _keys(panels: Sequence[Axes]) -> tuple[list[Artist], list[str]]:
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _alt(rows: Sequence[Acceptance]) -> str:
    parts = [f"{row.arm} at {row.concurrency}: {_points(row)}" for row in rows]
    return f"Share of verify rounds that keep at least k drafts, over k. {'; '.join(parts)}."


def _points(row: Acceptance) -> str:
    return ", ".join(aligned([Reading(estimate.point) for estimate in row.survival], unit=SHARE)) or "bounds alone"
