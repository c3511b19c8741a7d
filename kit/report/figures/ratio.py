"""Ratio to the baseline over concurrency: above the band the arm is faster, below it is slower."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.format import RATIO, Reading, aligned
from kit.report.figures.picture import Picture
from kit.report.figures.style import (
    GREY,
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
from kit.stats import SpeedWord
from kit.verdict import ComparisonVerdict, Verdict

__all__ = ["ratio_figure"]

_TICKS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


def ratio_figure(verdict: Verdict) -> Picture | None:
    """Ratio of every arm to its baseline; None when there is none."""
    curves = _curves(verdict)
    if not curves:
        return None
    with house_style():
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
        _draw(axes, curves, verdict)
        return picture(figure, _alt(curves))


def _curves(verdict: Verdict) -> dict[str, list[ComparisonVerdict]]:
    measured = [word for word in verdict.speed.comparisons if word.comparison.ratio.point is not None]
    curves = {
        arm.name: sorted((w for w in measured if w.comparison.arm == arm.name), key=lambda w: w.comparison.concurrency)
        for arm in verdict.what_ran.arms
    }
    return {arm: words for arm, words in curves.items() if words}


def _draw(axes: Axes, curves: dict[str, list[ComparisonVerdict]], verdict: Verdict) -> None:
    styles = looks(verdict.what_ran.arms)
    concurrency_axis(axes, sorted({word.comparison.concurrency for words in curves.values() for word in words}))
    axes.set_yscale("log")
    noise = verdict.speed.noise_threshold
    axes.axhspan(1 - noise, 1 + noise, color="#000000", alpha=0.10, linewidth=0)
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    ends = []
    for position, (arm, words) in enumerate(curves.items()):
        xs = [word.comparison.concurrency * dodge(position, len(curves)) for word in words]
        ratios = [word.comparison.ratio for word in words]
        open_words = [word.word is SpeedWord.INCONCLUSIVE for word in words]
        draw_series(axes, Series(xs, ratios, open_words, styles[arm]))
        ends.append((styles[arm], xs[-1], ratios[-1].point or 1.0))
    _scale(axes)
    axes.set_title("Throughput relative to the baseline")
    axes.set_ylabel("Arm / baseline: above 1 the arm is faster")
    note(axes, _key(noise), at="left")
    label_ends(axes, ends)


def _key(noise: float) -> str:
    return f"grey band: within ±{100 * noise:g} %, equivalent    hollow: inconclusive"


def _scale(axes: Axes) -> None:
    """Round ticks within what is shown, with 1 always in sight and room for the key below."""
    low, high = axes.get_ylim()
    low, high = min(low, 0.9), max(high, 1.1)
    low *= (low / high) ** 0.1
    axes.set_yticks([tick for tick in _TICKS if low <= tick <= high])
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(low, high)


def _alt(curves: dict[str, list[ComparisonVerdict]]) -> str:
    parts = [f"{arm}: {_points(words)}" for arm, words in curves.items()]
    return f"Throughput of each arm divided by its baseline's, over requests at once. {'; '.join(parts)}."


def _points(words: Sequence[ComparisonVerdict]) -> str:
    texts = aligned([Reading(word.comparison.ratio.point) for word in words], unit=RATIO)
    return ", ".join(f"{text} at {word.comparison.concurrency}" for text, word in zip(texts, words, strict=True))
