"""The two values that leave this package: a number with its interval, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kit.stats.errors import StatsError

__all__ = ["Estimate", "Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval at a confidence level, e.g. 0.95; never NaN, never inverted."""

    lo: float
    hi: float
    level: float

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise StatsError(f"interval [{self.lo}, {self.hi}] is not an interval; order its ends")
        if not 0 < self.level < 1:
            raise StatsError(f"confidence level {self.level} is not between 0 and 1; 95 % is 0.95")

    def contains(self, value: float) -> bool:
        """Whether `value` lies inside, ends included."""
        return self.lo <= value <= self.hi

    def within(self, margin: float) -> bool:
        """Whether the whole interval lies strictly inside (-margin, margin)."""
        return -margin < self.lo and self.hi < margin


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point, its interval, the number of independent units behind it and the method that made it.

    `n` counts the units that carry the interval (prompts, launches or blocks: the method says which), not rounds
    or tokens. Whatever is None, the point or only its interval, has its reason in `reason`.
    """

    point: float | None
    interval: Interval | None
    n: int
    method: str
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.point is not None and not math.isfinite(self.point):
            raise StatsError(f"estimate {self.point} is not a number; report it as missing, with a reason")
        if self.point is None and self.interval is not None:
            raise StatsError("an interval without a point says nothing; give both or neither")
        if (self.point is None or self.interval is None) and not self.reason:
            raise StatsError("a missing number needs its reason")

    @classmethod
    def missing(cls, reason: str, *, n: int = 0, method: str = "none") -> Self:
        """No number, and why."""
        return cls(None, None, n, method, reason)

    @classmethod
    def bare(cls, point: float, *, n: int, method: str, reason: str) -> Self:
        """A point that carries no interval, and why."""
        return cls(point, None, n, method, reason)

    def mapped(self, f: Callable[[float], float]) -> Estimate:
        """The estimate of f(x) for a monotone f: point and ends are mapped, the ends are put in order."""
        try:
            point = None if self.point is None else f(self.point)
            interval = _mapped_interval(self.interval, f)
        except (OverflowError, ZeroDivisionError) as error:
            raise StatsError(
                f"{self.point} in {self.interval} is out of range: {error}; leave the units out"
            ) from error
        return Estimate(point, interval, self.n, self.method, self.reason)


def _mapped_interval(interval: Interval | None, f: Callable[[float], float]) -> Interval | None:
    if interval is None:
        return None
    lo, hi = sorted((f(interval.lo), f(interval.hi)))
    return Interval(lo, hi, interval.level)
