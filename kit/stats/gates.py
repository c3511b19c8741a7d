"""Gate v1: does the acceptance curve move with K by more than a margin? PASS, FAIL or INCONCLUSIVE (method 2.1).

PASS is an intersection-union equivalence test (every cell must reject, so no correction is due); FAIL is a union
claim and is Holm-adjusted. A small sample is neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypedDict

from scipy import stats

from kit.stats.errors import StatsError
from kit.stats.multiplicity import holm

__all__ = ["GateDecision", "GateWord", "gate_decision", "min_prompts_zero_discordance", "n_needed"]

ALPHA: Final = 0.05
POWER: Final = 0.80


class GateWord(StrEnum):
    """What a gate can say."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class GateDecision(TypedDict):
    """Verdict over cells, the Holm-adjusted p of |d| > delta and whether each 90 % interval is inside."""

    verdict: str
    p_holm: list[float]
    inside: list[bool]


def gate_decision(cells: Sequence[Sequence[float]], *, delta: float, alpha: float = ALPHA) -> GateDecision:
    """Decision from [difference, standard error] pairs in the z form; no cell at all is INCONCLUSIVE."""
    _check(delta, alpha)
    if not all(math.isfinite(d) and 0 <= se < math.inf for d, se in cells):
        raise StatsError("a difference is not finite or a standard error not 0 or more; leave the cell out")
    z = float(stats.norm.ppf(1 - alpha))
    inside = [abs(d) + z * se < delta for d, se in cells]
    p_holm = holm([exceedance_p(d, se, delta) for d, se in cells])
    return GateDecision(verdict=gate_word(inside, p_holm, alpha).value, p_holm=p_holm, inside=inside)


def _check(delta: float, alpha: float = ALPHA) -> None:
    if not (0 < delta < math.inf and 0 < alpha < 1):
        raise StatsError(
            f"margin {delta} is not above 0, or alpha {alpha} not between 0 and 1; 0.02 and 0.05 are usual"
        )


def gate_word(inside: Sequence[bool], p_holm: Sequence[float], alpha: float) -> GateWord:
    """The rule of 2.1 on any set of cells."""
    if any(p < alpha for p in p_holm):
        return GateWord.FAIL
    return GateWord.PASS if inside and all(inside) else GateWord.INCONCLUSIVE


def exceedance_p(d: float, se: float, delta: float, *, freedom: int | None = None) -> float:
    """One-sided p of |d| > delta, by t when a small sample gives degrees of freedom; without spread it is 0 or 1."""
    if se == 0:
        return 0.0 if abs(d) > delta else 1.0
    z = (abs(d) - delta) / se
    return float(stats.norm.sf(z) if freedom is None else stats.t.sf(z, freedom))


def n_needed(n: int, *, d: float, se: float, delta: float, m: int = 1) -> int | None:
    """Prompts that decide a cell with power 0.80 if d and the spread stay as they are; None on the margin itself.

    m is the number of cells, for the Holm-adjusted claim that is due when |d| > delta.
    """
    _check(delta)
    if not (0 <= n < math.inf and math.isfinite(d) and 0 <= se < math.inf and m >= 1):
        raise StatsError(f"n={n}, d={d}, se={se}, m={m}: a size needs finite numbers, se of 0 or more and a cell")
    gap = abs(delta - abs(d))
    if gap == 0:
        return None
    z_alpha = stats.norm.ppf(1 - ALPHA if abs(d) < delta else 1 - ALPHA / m)
    return math.ceil(n * float((z_alpha + stats.norm.ppf(POWER)) * se / gap) ** 2)


def min_prompts_zero_discordance(delta: float, *, alpha: float = ALPHA) -> int:
    """Smallest n with 1 - alpha^(1/n) <= delta: prompts that an exactly concordant capture needs (method 2.3)."""
    if not 0 < delta < 1:
        raise StatsError(f"margin {delta} is not between 0 and 1; the default is 0.02")
    _check(delta, alpha)
    return math.ceil(math.log(alpha) / math.log1p(-delta))
