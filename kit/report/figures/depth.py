"""Which K was in force when: shares of busy time by K over the course of each adaptive launch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kit.analysis import DepthPace
from kit.format import PERCENT, Reading, aligned
from kit.report.figures.picture import Picture
from kit.report.figures.style import GREY, house_style, picture
from kit.verdict import Verdict

__all__ = ["depth_figure"]

MOST_LAUNCHES = 4
Floats = npt.NDArray[np.float64]


def depth_figure(verdict: Verdict) -> Picture | None:
    """A strip for each traced adaptive launch, the first four; None when there is none."""
    paces = [pace for pace in verdict.depth_paces if pace.timeline][:MOST_LAUNCHES]
    if not paces:
        return None
    depths = sorted({time.depth for pace in paces for time in pace.times})
    colours = {depth: _colour(at, len(depths)) for at, depth in enumerate(depths)}
    with house_style():
        figure = Figure(figsize=(7.2, 1.5 + 0.95 * len(paces)), layout="constrained")
        figure.suptitle("K in force over time", x=0.01, ha="left", size=11, weight="bold")
        strips = figure.subplots(len(paces), 1, squeeze=False)[:, 0]
        for axes, pace in zip(strips, paces, strict=True):
            _draw(axes, pace, colours)
        strips[-1].set_xlabel("Seconds since the launch's first iteration, warm-up included")
        keys = [
            Patch(facecolor=colours[depth], edgecolor=GREY, linewidth=0.5, label=f"K = {depth}") for depth in depths
        ]
        figure.legend(handles=keys, loc="outside right upper")
        return picture(figure, _alt(paces))


def _colour(at: int, of: int) -> str:
    """From light to dark with K: the order survives a grey print and every kind of colour blindness."""
    return mpl.colors.to_hex(mpl.colormaps["cividis_r"](0.05 + 0.9 * at / max(of - 1, 1)))


def _draw(axes: Axes, pace: DepthPace, colours: dict[int, str]) -> None:
    edges, shares = _steps(pace, list(colours))
    tops = np.cumsum(100 * shares, axis=0)
    for below, above, colour in zip([np.zeros(len(edges)), *tops[:-1]], tops, colours.values(), strict=True):
        # a line of its own colour closes the seam that viewers draw between neighbours
        axes.fill_between(edges, below, above, step="post", color=colour, linewidth=0.2)
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.grid(visible=False)
    axes.set_ylabel(f"launch {pace.launch},\n% of time", size=8.5)


def _steps(pace: DepthPace, depths: Sequence[int]) -> tuple[Floats, Floats]:
    """Beginnings of stretches (n,) with the end of the last, and shares (depths, n); NaN where nothing ran."""
    edges: list[float] = []
    rows: list[list[float]] = []
    for span in pace.timeline:
        if edges and span.since_s > edges[-1]:
            rows[-1] = [math.nan] * len(depths)
        elif edges:
            del edges[-1], rows[-1]
        share = {time.depth: time.share for time in span.times}
        row = [share.get(depth, 0.0) for depth in depths]
        edges += [span.since_s, span.until_s]
        rows += [row, row]
    return np.array(edges), np.array(rows).T


def _alt(paces: Sequence[DepthPace]) -> str:
    parts = []
    for pace in paces:
        texts = aligned([Reading(time.share) for time in pace.times], unit=PERCENT)
        shares = ", ".join(f"K={time.depth} {text} %" for time, text in zip(pace.times, texts, strict=True))
        parts.append(f"launch {pace.launch} of {pace.arm}: {shares}")
    return f"Share of busy time at each K over the course of each adaptive launch. In all: {'; '.join(parts)}."
