"""Whether the host stayed the same: every launch of the baseline, in order, against the mean of its level."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kit.analysis import CellResult
from kit.format import RATIO, Reading, aligned
from kit.records import Role
from kit.report.figures.picture import Picture
from kit.report.figures.style import GREY, house_style, level_looks, picture
from kit.verdict import Verdict

__all__ = ["drift_figure"]

_FILL = {Role.MEASURE: "full", Role.AA_SPEED: "none", Role.CLOSING: "left"}
_NAMES = {
    Role.MEASURE: "measured",
    Role.AA_SPEED: "control: again in the block",
    Role.CLOSING: "control: end of the run",
}


def drift_figure(verdict: Verdict) -> Picture | None:
    """Window throughput of the first baseline by launch; None with fewer than three launches."""
    baselines = [arm.name for arm in verdict.what_ran.arms if arm.baseline is None]
    cells = [
        cell
        for cell in verdict.speed.cells
        if cell.arm in baselines[:1] and cell.role in _FILL and cell.throughput_window.point is not None
    ]
    launches = sorted({cell.launch for cell in cells})
    if len(launches) < 3:
        return None
    with house_style():
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.axhline(1.0, color=GREY, linewidth=1.0)
        levels = sorted({cell.concurrency for cell in cells})
        for level, look in zip(levels, level_looks(levels), strict=True):
            _draw(axes, [cell for cell in cells if cell.concurrency == level], look)
        axes.set_xticks(launches)
        axes.set_title("The baseline over the run")
        axes.set_xlabel("Launch, in the order in which servers were started")
        axes.set_ylabel("Throughput / mean of the level")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3f}")
        _key(figure, axes, sorted({cell.role for cell in cells}, key=list(_FILL).index))
        return picture(figure, _alt(cells))


def _relative(cells: Sequence[CellResult]) -> list[float]:
    speeds = [cell.throughput_window.point or 1.0 for cell in cells]
    mean = geometric_mean(speeds)
    return [speed / mean for speed in speeds]


def _draw(axes: Axes, cells: Sequence[CellResult], look: tuple[str, str]) -> None:
    colour, marker = look
    ordered = sorted(cells, key=lambda cell: cell.launch)
    heights = _relative(ordered)
    axes.plot([cell.launch for cell in ordered], heights, color=colour, linewidth=1.0, alpha=0.6)
    for cell, height in zip(ordered, heights, strict=True):
        line = Line2D([cell.launch], [height], marker=marker, color=colour, markersize=7, fillstyle=_FILL[cell.role])  # type: ignore[arg-type]
        axes.add_line(line)
    axes.plot([], [], color=colour, marker=marker, label=f"{ordered[0].concurrency} at once")
    axes.autoscale_view()


def _key(figure: Figure, axes: Axes, roles: Sequence[Role]) -> None:
    handles, labels = axes.get_legend_handles_labels()
    for role in roles:
        handles.append(
            Line2D([], [], linestyle="none", marker="o", color=GREY, markersize=7, fillstyle=_FILL[role])  # type: ignore[arg-type]
        )
        labels.append(_NAMES[role])
    figure.legend(handles, labels, loc="outside lower center", ncols=4)


def _alt(cells: Sequence[CellResult]) -> str:
    parts = []
    for level in sorted({cell.concurrency for cell in cells}):
        mine = sorted((cell for cell in cells if cell.concurrency == level), key=lambda cell: cell.launch)
        texts = aligned([Reading(value) for value in _relative(mine)], unit=RATIO)
        parts.append(f"{level} at once: {', '.join(texts)}")
    return f"Throughput of the baseline's launches in order, over the mean of their level. {'; '.join(parts)}."
