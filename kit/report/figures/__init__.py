"""Figures as SVG and PNG, byte for byte the same for the same verdict."""

from __future__ import annotations

from kit.report.figures.picture import Picture
from kit.verdict import Verdict

__all__ = ["FIGURES", "Picture", "pictures"]

FIGURES = ("throughput", "ratio", "latency", "acceptance", "cost", "classes", "depth", "drift")
"""Names, in the order in which a report shows them."""


def pictures(verdict: Verdict) -> dict[str, Picture]:
    """Every figure that the verdict has numbers for, by name."""
    # Drawing takes two seconds to import, and most commands draw nothing.
    from kit.report.figures.draw import DRAWN

    drawn = {name: DRAWN[name](verdict) for name in FIGURES}
    return {name: picture for name, picture in drawn.items() if picture is not None}
