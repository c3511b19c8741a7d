"""Figures as SVG, byte for byte the same for the same verdict: throughput, ratio and acceptance."""

from __future__ import annotations

from kit.report.figures.acceptance import acceptance_figure
from kit.report.figures.ratio import ratio_figure
from kit.report.figures.style import Picture
from kit.report.figures.throughput import throughput_figure
from kit.verdict import Verdict

__all__ = ["Picture", "pictures"]

_FIGURES = {"throughput": throughput_figure, "ratio": ratio_figure, "acceptance": acceptance_figure}


def pictures(verdict: Verdict) -> dict[str, Picture]:
    """Every figure that the verdict has numbers for, by name."""
    drawn = {name: draw(verdict) for name, draw in _FIGURES.items()}
    return {name: picture for name, picture in drawn.items() if picture is not None}
