"""How long users wait: median and 99th percentile of the time to the first token and of the time per output token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from kit.analysis import CellResult, Distribution
from kit.format import MILLISECONDS, Reading, aligned
from kit.records import Role
from kit.report.figures.picture import Picture
from kit.report.figures.style import Look, concurrency_axis, dodge, house_style, looks, note, picture
from kit.units import MS_PER_S
from kit.verdict import Verdict

__all__ = ["latency_figure"]

_Wait = Callable[[CellResult], Distribution]


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    wait: _Wait


_PANELS = (
    _Panel("Time to first token (TTFT)", lambda cell: cell.ttft_s),
    _Panel("Time per output token (TPOT)", lambda cell: cell.tpot_s),
)


def latency_figure(verdict: Verdict) -> Picture | None:
    """Waits of every arm, the mean over its launches; None when nothing was timed."""
    cells = [cell for cell in verdict.speed.cells if cell.role is Role.MEASURE and cell.tpot_s.p50 is not None]
    if not cells:
        return None
    arms = [arm.name for arm in verdict.what_ran.arms if any(cell.arm == arm.name for cell in cells)]
    styles = looks(verdict.what_ran.arms)
    with house_style():
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        figure.suptitle("How long users wait", x=0.01, ha="left", size=11, weight="bold")
        panels = figure.subplots(1, 2)
        for axes, panel in zip(panels, _PANELS, strict=True):
            for position, arm in enumerate(arms):
                mine = [cell for cell in cells if cell.arm == arm]
                _draw(axes, mine, panel.wait, styles[arm], dodge(position, len(arms)))
            concurrency_axis(axes, sorted({cell.concurrency for cell in cells}))
            axes.set_xlabel("Requests at once")
            axes.set_title(f"{panel.title}, ms", weight="normal", size=9.5)
            _scale(axes)
        note(panels[0], "filled: median    hollow: 99th percentile", at="left")
        handles, labels = panels[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 7))
        return picture(figure, _alt(arms, cells))


def _draw(axes: Axes, cells: Sequence[CellResult], wait: _Wait, look: Look, shift: float) -> None:
    levels = sorted({cell.concurrency for cell in cells})
    at = [level * shift for level in levels]
    medians = [_over_launches(cells, level, lambda cell: wait(cell).p50) for level in levels]
    slowest = [_over_launches(cells, level, lambda cell: wait(cell).p99) for level in levels]
    axes.plot(at, medians, color=look.colour, linestyle=look.line, marker=look.marker, markersize=5, label=look.name)
    axes.plot(
        at, slowest, color=look.colour, linestyle="none", marker=look.marker, markersize=5, markerfacecolor="white"
    )


def _over_launches(cells: Sequence[CellResult], level: int, read: Callable[[CellResult], float | None]) -> float:
    """Milliseconds, the geometric mean over launches; NaN leaves a gap."""
    found = [value for cell in cells if cell.concurrency == level and (value := read(cell))]
    return geometric_mean(found) * MS_PER_S if found else float("nan")


def _scale(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    axes.set_ylim(low / 1.35, high * 1.1)


def _alt(arms: Sequence[str], cells: Sequence[CellResult]) -> str:
    parts = []
    for arm in arms:
        mine = [cell for cell in cells if cell.arm == arm]
        levels = sorted({cell.concurrency for cell in mine})
        medians = [_over_launches(mine, level, lambda cell: cell.tpot_s.p50) / MS_PER_S for level in levels]
        texts = aligned([Reading(median) for median in medians], unit=MILLISECONDS)
        parts.append(f"{arm}: {', '.join(f'{t} ms at {level}' for t, level in zip(texts, levels, strict=True))}")
    return f"Time to first token and time per output token over requests at once. Median TPOT: {'; '.join(parts)}."
