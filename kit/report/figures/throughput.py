"""Throughput over concurrency, one line an arm, with the crossover of each arm marked."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.analysis import LevelResult
from kit.format import TOKENS_PER_SECOND, Reading, aligned
from kit.report.figures.style import (
    GREY,
    Look,
    Picture,
    concurrency_axis,
    dodge,
    draw_estimates,
    house_style,
    label_ends,
    looks,
    picture,
)
from kit.verdict import CrossoverVerdict, TrueThroughput, Verdict

__all__ = ["throughput_figure"]


def throughput_figure(verdict: Verdict) -> Picture | None:
    """Throughput of every arm; None when no level has a number."""
    curves = _curves(verdict)
    if not curves:
        return None
    with house_style():
        figure = Figure(figsize=(7.2, 4.3), layout="constrained")
        axes = figure.subplots()
        _draw(axes, curves, verdict)
        return picture(figure, _alt(curves))


def _curves(verdict: Verdict) -> dict[str, list[LevelResult]]:
    """Levels that have a point, by arm in the order of the spec, ascending in concurrency."""
    measured = [level for level in verdict.speed.levels if level.throughput_window.point is not None]
    curves = {
        arm.name: sorted((one for one in measured if one.arm == arm.name), key=lambda one: one.concurrency)
        for arm in verdict.what_ran.arms
    }
    return {arm: levels for arm, levels in curves.items() if levels}


def _draw(axes: Axes, curves: dict[str, list[LevelResult]], verdict: Verdict) -> None:
    styles = looks(verdict.what_ran.arms)
    concurrency_axis(axes, sorted({level.concurrency for levels in curves.values() for level in levels}))
    _draw_truth(axes, verdict.speed.truth)
    ends = []
    for position, (arm, levels) in enumerate(curves.items()):
        shift = dodge(position, len(curves))
        xs, estimates = [level.concurrency * shift for level in levels], [level.throughput_window for level in levels]
        draw_estimates(axes, xs, estimates, look=styles[arm], hollow=[e.interval is None for e in estimates])
        ends.append((styles[arm], xs[-1], estimates[-1].point or 0.0))
    axes.set_ylim(bottom=0)
    axes.set_ylabel("Output throughput, tok/s")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _mark_crossovers(axes, verdict.speed.crossovers, styles)
    axes.set_title("Throughput over concurrency", pad=_title_pad(verdict.speed.crossovers))
    label_ends(axes, ends)


def _draw_truth(axes: Axes, truth: Sequence[TrueThroughput]) -> None:
    if truth:
        xs, ys = [true.concurrency for true in truth], [true.tok_s for true in truth]
        axes.plot(xs, ys, linestyle="none", marker="x", color=GREY, markersize=7, label="true value of the simulator")
        axes.legend(loc="upper left")


def _mark_crossovers(axes: Axes, crossovers: Sequence[CrossoverVerdict], styles: dict[str, Look]) -> None:
    """A line at each crossover that was found, a band over its interval, and its value above the axes."""
    for row, crossover in enumerate(_found(crossovers)):
        at, look = crossover.result.concurrency, styles[crossover.result.arm]
        if at.point is None:
            continue
        if at.interval is not None:
            axes.axvspan(at.interval.lo, at.interval.hi, color=look.colour, alpha=0.10, linewidth=0)
        axes.axvline(at.point, color=look.colour, linestyle=":", linewidth=1.2)
        axes.annotate(
            f"{look.name} crosses at {at.point:.1f}",
            xy=(at.point, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 11 * row),
            textcoords="offset points",
            color=look.colour,
            fontsize=8.5,
            ha="center",
            va="bottom",
        )


def _found(crossovers: Sequence[CrossoverVerdict]) -> list[CrossoverVerdict]:
    return [crossover for crossover in crossovers if crossover.result.concurrency.point is not None]


def _title_pad(crossovers: Sequence[CrossoverVerdict]) -> float:
    return 8.0 + 11.0 * len(_found(crossovers))


def _alt(curves: dict[str, list[LevelResult]]) -> str:
    parts = [f"{arm}: {_ends(levels)}" for arm, levels in curves.items()]
    return f"Output tokens per second over requests at once, one line for each arm. {'; '.join(parts)}."


def _ends(levels: Sequence[LevelResult]) -> str:
    texts = aligned([Reading(level.throughput_window.point) for level in levels], unit=TOKENS_PER_SECOND)
    return ", ".join(f"{text} at {level.concurrency}" for text, level in zip(texts, levels, strict=True))
