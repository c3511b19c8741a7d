"""Numbers to text: one unit and one precision for a whole column, so that a reader compares digits by eye.

Values come in the kit's own units (seconds, fractions, tokens a second) and leave in the unit a person reads. The
symbol of the unit belongs in the head of a table; `sentence` is for prose, which has no head.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "COUNT",
    "MILLIJOULES",
    "MILLISECONDS",
    "MISSING",
    "PERCENT",
    "PLAIN",
    "RATIO",
    "SECONDS",
    "SHARE",
    "TOKENS_PER_SECOND",
    "Reading",
    "Unit",
    "aligned",
    "count",
    "decimals",
    "missing",
    "probability",
    "sentence",
]

MISSING = "–"


@dataclass(frozen=True, slots=True)
class Unit:
    """How a quantity is printed: multiplied by `scale`, `digits` of the smallest point, `fewest` to `most` decimals."""

    symbol: str
    scale: float = 1.0
    digits: int = 3
    fewest: int = 0
    most: int = 3


COUNT = Unit("", most=0)
PLAIN = Unit("", digits=2, fewest=1)
RATIO = Unit("", digits=2, fewest=2)
SHARE = Unit("", fewest=3)  # probabilities and acceptance, where the third digit decides a gate
PERCENT = Unit("%", scale=100.0, fewest=1, most=2)
SECONDS = Unit("s", fewest=1)
MILLISECONDS = Unit("ms", scale=1000.0, fewest=1, most=2)
MILLIJOULES = Unit("mJ", scale=1000.0, fewest=1, most=2)
TOKENS_PER_SECOND = Unit("tok/s", most=1)


@dataclass(frozen=True, slots=True)
class Reading:
    """A number with the ends of its interval; None for whatever is absent. ValueError on NaN or infinity."""

    point: float | None
    lo: float | None = None
    hi: float | None = None

    def __post_init__(self) -> None:
        for value in self.present():
            if not math.isfinite(value):
                raise ValueError(f"{value} cannot be printed; report it as missing, with a reason")
        if (self.lo is None) != (self.hi is None):
            raise ValueError(f"interval [{self.lo}, {self.hi}] has one end; give both or neither")

    def present(self) -> tuple[float, ...]:
        """The numbers there are: point, then ends."""
        return tuple(value for value in (self.point, self.lo, self.hi) if value is not None)


def decimals(readings: Iterable[Reading], *, unit: Unit) -> int:
    """Decimals that show the unit's digits of the smallest point and one of the narrowest interval's half-width."""
    needed = [unit.fewest]
    for reading in readings:
        if reading.point:
            needed.append(unit.digits - _digits_before_point(reading.point * unit.scale))
        if reading.lo is not None and reading.hi is not None and reading.lo < reading.hi:
            # halved first: the distance between two finite ends may be infinite
            needed.append(1 - _digits_before_point((reading.hi / 2 - reading.lo / 2) * unit.scale))
    return min(max(needed), unit.most)


def aligned(readings: Sequence[Reading], *, unit: Unit) -> tuple[str, ...]:
    """The readings of one row or column, e.g. "1.27 [1.19, 1.36]", all with the same decimals and no symbol."""
    places = decimals(readings, unit=unit)
    return tuple(_text(reading, unit, places) for reading in readings)


def sentence(reading: Reading, *, unit: Unit) -> str:
    """One reading with its unit, e.g. "773 tok/s [729, 789]"."""
    (text,) = aligned((reading,), unit=unit)
    point, space, rest = text.partition(" [")
    return f"{point} {unit.symbol}{space}{rest}" if unit.symbol and point != MISSING else text


def probability(value: float) -> str:
    """A p value with three decimals; "<0.001" below them, because no test shows a chance of nothing."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int) -> str:
    """A count with thousands separators, e.g. "11,535"."""
    return f"{value:,}"


def missing(reason: str) -> str:
    """The mark of a missing number and why it is missing."""
    return f"{MISSING} ({reason})"


def _digits_before_point(value: float) -> int:
    """Digits before the decimal point of |value|, 0 or negative below one; 0 where value has no magnitude."""
    if value == 0 or not math.isfinite(value):
        return 0
    return math.floor(math.log10(abs(value))) + 1


def _text(reading: Reading, unit: Unit, places: int) -> str:
    if reading.point is None:
        return MISSING
    point = _number(reading.point, unit, places)
    if reading.lo is None or reading.hi is None:
        return point
    return f"{point} [{_number(reading.lo, unit, places)}, {_number(reading.hi, unit, places)}]"


def _number(value: float, unit: Unit, places: int) -> str:
    # adding zero turns the -0.0 of a rounded small loss into 0.0
    return f"{round(value * unit.scale, places) + 0.0:,.{places}f}"
