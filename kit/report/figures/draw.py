"""The table of figures; importing it imports the drawing library."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kit.report.figures.acceptance import acceptance_figure
from kit.report.figures.classes import classes_figure
from kit.report.figures.cost import cost_figure
from kit.report.figures.depth import depth_figure
from kit.report.figures.drift import drift_figure
from kit.report.figures.latency import latency_figure
from kit.report.figures.picture import Picture
from kit.report.figures.ratio import ratio_figure
from kit.report.figures.throughput import throughput_figure
from kit.verdict import Verdict

__all__ = ["DRAWN"]

DRAWN: Mapping[str, Callable[[Verdict], Picture | None]] = {
    "throughput": throughput_figure,
    "ratio": ratio_figure,
    "latency": latency_figure,
    "acceptance": acceptance_figure,
    "cost": cost_figure,
    "classes": classes_figure,
    "depth": depth_figure,
    "drift": drift_figure,
}
