"""Throughput over concurrency, one line an arm, with the crossover of each arm marked."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from kit.format import TOKENS_PER_SECOND, Reading, aligned
from kit.report.figures.picture import Picture
from kit.report.figures.style import (
    Look,
    Series,
    concurrency_axis,
    dodge,
    draw_series,
    house_style,
    label_ends,
    looks,
    note,
    picture,
)
from kit.report.measure import Measure, shown_measure
from kit.stats import Estimate
from kit.verdict import CrossoverVerdict, Verdict

__all__ = ["throughput_figure"]


Curves = dict[str, list[tuple[int, Estimate]]]


def throughput_figure(verdict: Verdict) -> Picture | None:
    """Throughput of every arm; None when no level has a number."""
    measure = shown_measure(verdict.speed)
    curves = _curves(verdict, measure)
    if not curves:
        return None
    with house_style():
        figure = Figure(figsize=(7.2, 4.3), layout="constrained")
        axes = figure.subplots()
        _draw(axes, curves, verdict, measure)
        axes.set_ylabel(f"Output throughput, {measure.name}, logarithmic")
        return picture(figure, _alt(curves, measure))


def _curves(verdict: Verdict, measure: Measure) -> Curves:
    """(concurrency, throughput) of the levels that have a point, by arm in the order of the spec."""
    levels = sorted(verdict.speed.levels, key=lambda level: level.concurrency)
    curves = {
        arm.name: [(one.concurrency, measure.throughput(one)) for one in levels if one.arm == arm.name]
        for arm in verdict.what_ran.arms
    }
    present = {arm: [pair for pair in pairs if pair[1].point is not None] for arm, pairs in curves.items()}
    return {arm: pairs for arm, pairs in present.items() if pairs}


def _draw(axes: Axes, curves: Curves, verdict: Verdict, measure: Measure) -> None:
    styles = looks(verdict.what_ran.arms)
    concurrency_axis(axes, sorted({level for pairs in curves.values() for level, _ in pairs}))
    truth = {(true.arm, true.concurrency): true.tok_s for true in verdict.speed.truth if measure.is_window}
    ends = []
    for position, (arm, pairs) in enumerate(curves.items()):
        shift = dodge(position, len(curves))
        xs, estimates = [level * shift for level, _ in pairs], [estimate for _, estimate in pairs]
        hollow = [estimate.interval is None for estimate in estimates]
        draw_series(axes, Series(xs, estimates, hollow, styles[arm]))
        _draw_truth(axes, xs, [truth.get((arm, level)) for level, _ in pairs], styles[arm])
        ends.append((styles[arm], xs[-1], estimates[-1].point or 0.0))
    _throughput_axis(axes)
    _mark_crossovers(axes, verdict.speed.crossovers, styles)
    axes.set_title("Throughput over concurrency", pad=_title_pad(verdict.speed.crossovers))
    bare = any(estimate.interval is None for pairs in curves.values() for _, estimate in pairs)
    keys = [("hollow: no interval", bare), ("ring: true value of the simulator", bool(truth))]
    note(axes, "    ".join(key for key, used in keys if used), at="right")
    label_ends(axes, ends)


def _throughput_axis(axes: Axes) -> None:
    """Logarithmic as well: equal ratios are equal distances, and two lines cross where the ratio is 1."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    steps = (1.0, 2.0, 5.0) if high > 10 * low else (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    axes.set_ylim(low / 1.1, high * 1.1)


def _draw_truth(axes: Axes, xs: Sequence[float], truth: Sequence[float | None], look: Look) -> None:
    """A ring around what the simulator really does, where the simulator was measured."""
    known = [(x, y) for x, y in zip(xs, truth, strict=True) if y is not None]
    if known:
        at, heights = zip(*known, strict=True)
        rings = axes.plot(at, heights, linestyle="none", marker="o", markersize=12, color=look.colour)
        rings[0].set(fillstyle="none", markeredgewidth=0.9)


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


def _alt(curves: Curves, measure: Measure) -> str:
    parts = [f"{arm}: {_points(pairs)}" for arm, pairs in curves.items()]
    return f"Output throughput in {measure.name} over requests at once, one line for each arm. {'; '.join(parts)}."


def _points(pairs: Sequence[tuple[int, Estimate]]) -> str:
    texts = aligned([Reading(estimate.point) for _, estimate in pairs], unit=TOKENS_PER_SECOND)
    return ", ".join(f"{text} at {level}" for text, (level, _) in zip(texts, pairs, strict=True))
