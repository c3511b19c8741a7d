"""What a round yields against what it has to verify: tokens a round over tokens a verified position."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.analysis import Acceptance
from kit.format import SHARE, Reading, aligned
from kit.report.figures.picture import Picture
from kit.report.figures.style import Look, house_style, key_beside, looks, picture
from kit.stats import Estimate
from kit.verdict import Verdict

__all__ = ["cost_figure"]


def cost_figure(verdict: Verdict) -> Picture | None:
    """One point an arm and concurrency; None when no arm of a fixed K has both numbers."""
    rows = [row for row in verdict.acceptance if _known(row)]
    if not rows:
        return None
    with house_style():
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
        styles = looks(verdict.what_ran.arms)
        for arm in dict.fromkeys(row.arm for row in rows):
            _draw(axes, [row for row in rows if row.arm == arm], styles[arm])
        axes.set_title("What a round yields, and what it verifies for it: a point a concurrency")
        axes.set_xlabel("Tokens a verified position (1: every verified position is a token of the answer)")
        axes.set_ylabel("Tokens a round")
        axes.set_xlim(0, min(1.02, 1.15 * max(_span(row.tokens_per_position)[1] for row in rows)))
        axes.set_ylim(bottom=1.0)
        key_beside(axes)
        return picture(figure, _alt(rows))


def _known(row: Acceptance) -> bool:
    return row.acceptance_length.point is not None and row.tokens_per_position.point is not None


def _draw(axes: Axes, rows: Sequence[Acceptance], look: Look) -> None:
    """A cross of both intervals and the arm's marker at every concurrency."""
    for row in rows:
        x, y = row.tokens_per_position, row.acceptance_length
        axes.plot(_span(x), [y.point or 0.0] * 2, color=look.colour, linewidth=1.1)
        axes.plot([x.point or 0.0] * 2, _span(y), color=look.colour, linewidth=1.1)
    xs = [row.tokens_per_position.point or 0.0 for row in rows]
    ys = [row.acceptance_length.point or 0.0 for row in rows]
    axes.plot(xs, ys, linestyle="none", marker=look.marker, color=look.colour, markersize=6, label=look.name)


def _span(estimate: Estimate) -> list[float]:
    point = estimate.point or 0.0
    return [estimate.interval.lo, estimate.interval.hi] if estimate.interval else [point, point]


def _alt(rows: Sequence[Acceptance]) -> str:
    parts = []
    for row in rows:
        known = (row.acceptance_length, row.tokens_per_position)
        tokens, position = aligned([Reading(estimate.point) for estimate in known], unit=SHARE)
        parts.append(f"{row.arm} at {row.concurrency}: {tokens} a round, {position} a position")
    return f"Tokens a round over tokens a verified position, one point an arm and concurrency. {'; '.join(parts)}."
