"""Two runs held against each other in one factor, or the reasons why they may not be. Pure."""

from kit.compare.compare import compare
from kit.compare.fields import Differences, Factor, FieldDifference, differences
from kit.compare.results import (
    COMPARISON_VERSION,
    ArmRatio,
    Consequence,
    DepthTime,
    RunComparison,
    Side,
    Tax,
)

__all__ = [
    "COMPARISON_VERSION",
    "ArmRatio",
    "Consequence",
    "DepthTime",
    "Differences",
    "Factor",
    "FieldDifference",
    "RunComparison",
    "Side",
    "Tax",
    "compare",
    "differences",
]
