"""What the statistics refuse: numbers that cannot be what they claim to be."""

from __future__ import annotations

from kit.errors import SpeckitError

__all__ = ["StatsError"]


class StatsError(SpeckitError, ValueError):
    """An argument is impossible (mass beyond K, a negative time, a margin of zero), so no estimate is made."""
