"""How every figure looks, and how it becomes text.

Colours are Okabe and Ito's, which colour-blind readers tell apart; every arm also has its own marker and line, so that
a grey print reads as well. A baseline is black.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from kit.analysis import ArmSummary
from kit.report.escape import clean
from kit.report.figures.picture import Picture
from kit.stats import Estimate

__all__ = [
    "GREY",
    "Look",
    "Series",
    "concurrency_axis",
    "dodge",
    "draw_series",
    "house_style",
    "key_beside",
    "label_ends",
    "level_looks",
    "looks",
    "note",
    "picture",
]

GREY = "#5f6368"
INK = "#202124"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", (0, (6, 1.5)), (0, (4, 1.5, 1, 1.5)), (0, (1.5, 1.5)), (0, (8, 2, 2, 2)))
_DPI = 110
_LEAST_GAP = 0.062  # between two labels, as a share of the axis; one line of text


@dataclass(frozen=True, slots=True)
class Look:
    """How one arm is drawn in every figure of a report."""

    name: str
    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Series:
    """One arm's estimates over `xs`; a `hollow` marker is one that needs care."""

    xs: Sequence[float]
    estimates: Sequence[Estimate]
    hollow: Sequence[bool]
    look: Look


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults and the house style, whatever the user's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rc("axes", axisbelow=True, edgecolor=GREY, grid=True, labelcolor=INK)
        mpl.rc("axes", titlelocation="left", titlesize=11, titleweight="bold")
        mpl.rc("axes.spines", right=False, top=False)
        mpl.rc("font", size=9.5)
        mpl.rc("grid", color="#e3e5e8", linewidth=0.7)
        mpl.rc("legend", frameon=False)
        mpl.rc("svg", fonttype="path", hashsalt="speckit")
        mpl.rc("text", parse_math=False)  # a dollar in a name is a dollar
        mpl.rc("xtick", color=GREY, labelcolor=INK)
        mpl.rc("ytick", color=GREY, labelcolor=INK)
        yield


def looks(arms: Sequence[ArmSummary]) -> dict[str, Look]:
    """A look for each arm, in the order of the spec, by the arm's name."""
    baselines = [arm.name for arm in arms if arm.baseline is None]
    others = [arm.name for arm in arms if arm.baseline is not None]
    black = {name: Look(_shown(name), "#000000", _MARKERS[i % 7], _LINES[i % 5]) for i, name in enumerate(baselines)}
    coloured = {
        name: Look(_shown(name), _COLOURS[i % 6], _MARKERS[(i + 1) % 7], _LINES[(i + 1) % 5])
        for i, name in enumerate(others)
    }
    return black | coloured


def picture(figure: Figure, alt: str) -> Picture:
    """The figure as SVG and PNG without a date, so that equal figures are equal files."""
    buffer, pixels, words = io.StringIO(), io.BytesIO(), clean(alt, longest=10_000)
    # Saving through the figure draws it twice each time; a layout made once holds for both.
    figure.set_dpi(_DPI)
    FigureCanvasAgg(figure).print_png(pixels, metadata={"Software": "speckit", "Title": words})  # type: ignore[no-untyped-call]
    figure.set_layout_engine("none")
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": "speckit", "Title": words})  # type: ignore[no-untyped-call]
    return Picture(buffer.getvalue(), pixels.getvalue(), words)


def level_looks(levels: Sequence[int]) -> list[tuple[str, str]]:
    """Colour and marker of each concurrency, where one figure shows one arm at several."""
    return [(_COLOURS[at % 6], _MARKERS[at % 7]) for at in range(len(levels))]


def key_beside(axes: Axes) -> None:
    """The names of the arms to the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def concurrency_axis(axes: Axes, levels: Sequence[int]) -> None:
    """A logarithmic axis that is labelled at the measured levels and nowhere else."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(levels)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(min(levels) / 1.25, max(levels) * 1.25)
    axes.set_xlabel("Requests at once (concurrency, logarithmic)")


def dodge(position: int, of: int) -> float:
    """Factor on a logarithmic axis that keeps the intervals of several arms from covering each other."""
    return float(1.018 ** (2 * position - (of - 1)))


def draw_series(axes: Axes, series: Series) -> None:
    """A line through the points, their intervals, and a marker each; points that are missing leave a gap."""
    xs, look = series.xs, series.look
    ys = [float("nan") if e.point is None else e.point for e in series.estimates]
    axes.plot(xs, ys, color=look.colour, linestyle=look.line, linewidth=1.6)
    for x, y, estimate, empty in zip(xs, ys, series.estimates, series.hollow, strict=True):
        if estimate.interval is not None:
            ends = [estimate.interval.lo, estimate.interval.hi]
            axes.plot([x, x], ends, color=look.colour, linewidth=1.1, marker="_", markersize=6)
        face = "white" if empty else look.colour
        axes.plot([x], [y], linestyle="none", marker=look.marker, color=look.colour, markerfacecolor=face, markersize=6)


def note(axes: Axes, line: str, *, at: Literal["left", "right"]) -> None:
    """How to read the markers, inside the axes at the bottom."""
    x = {"left": 0.01, "right": 0.99}[at]
    axes.text(x, 0.02, line, transform=axes.transAxes, color=GREY, fontsize=8, ha=at)


def label_ends(axes: Axes, ends: Sequence[tuple[Look, float, float]]) -> None:
    """Name each line at its right end (look, x, y), moved apart where two would cover each other."""
    to_axes = axes.transData - axes.transAxes
    heights = _apart([float(to_axes.transform((x, y))[1]) for _, x, y in ends])
    for (look, x, y), height in zip(ends, heights, strict=True):
        axes.annotate(
            look.name,
            xy=(x, y),
            xytext=(1.02, height),
            textcoords="axes fraction",
            color=look.colour,
            fontweight="bold",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": look.colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 5},
        )


def _apart(heights: Sequence[float]) -> list[float]:
    """The heights, neighbours moved away from each other until a line of text fits between any two."""
    moved = list(heights)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    for _ in range(60):
        for below, above in pairwise(order):
            overlap = _LEAST_GAP - (moved[above] - moved[below])
            if overlap > 0:
                moved[below] -= overlap / 2
                moved[above] += overlap / 2
    return moved


def _shown(name: str) -> str:
    return clean(name, longest=28)
