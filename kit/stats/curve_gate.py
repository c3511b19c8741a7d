"""Gate v1: the acceptance curve across depths, paired by prompt, against a margin (method 2.1 and 2.2).

Every depth and concurrency of a prompt is resampled together, so a draw gives all cells at once. Beside the verdict go
the legacy 0.05 line, which has no error rate, and the functional error: how wrong tokens per round become when the
deepest curve is read at a shallower depth, which is what an oracle would do with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.arrays import FloatArray, IntArray, quotient, tails
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval
from kit.stats.gates import ALPHA, GateWord, exceedance_p, gate_word, min_prompts_zero_discordance, n_needed
from kit.stats.intervals import (
    NO_SPREAD,
    UNANIMOUS,
    Resampling,
    no_interval_reason,
    no_spread,
    paired_ratio_diff,
    percentile_interval,
    resampled_sums,
    stratum_codes,
    unseen_share,
)
from kit.stats.multiplicity import holm

__all__ = ["CurveCell", "CurveGate", "FunctionalError", "curve_gate"]

DELTA: Final = 0.02
LEGACY_TOLERANCE: Final = 0.05
FUNCTIONAL_LIMIT: Final = 0.02
# Below this many prompts the percentile bootstrap is short of its level; the linearised t is not (method 1.5).
BOOTSTRAP_FROM: Final = 40
BOOTSTRAP: Final = "paired stratified cluster bootstrap over prompts"
LINEARISED: Final = "paired stratified cluster-linearised t over prompts"
NO_ROUNDS: Final = "some resamples held no rounds"

Captures = Mapping[int, Mapping[int, IntArray]]


@dataclass(frozen=True, slots=True)
class CurveCell:
    """S_k(K_a) - S_k(K_b) at one concurrency with its two-sided 90 % interval, hence one-sided 95 % limits."""

    concurrency: int
    K_a: int
    K_b: int
    k: int
    difference: Estimate
    se: float | None
    inside: bool
    p_holm: float
    n_needed: int | None


@dataclass(frozen=True, slots=True)
class FunctionalError:
    """Relative error of tokens per round when the deepest curve is read at shallower depths, at one concurrency.

    `by_depth` holds (K', signed error); `worst` is the largest absolute one, its upper end a one-sided 95 % limit.
    """

    concurrency: int
    by_depth: tuple[tuple[int, Estimate], ...]
    worst: Estimate

    def within(self, limit: float = FUNCTIONAL_LIMIT) -> bool:
        """Whether the upper limit allows a curve gap to be printed."""
        return self.worst.interval is not None and self.worst.interval.hi <= limit


@dataclass(frozen=True, slots=True)
class CurveGate:
    """Verdict of gate v1 with every cell, the worst one, the legacy line and the functional error per concurrency."""

    word: GateWord
    cells: tuple[CurveCell, ...]
    worst: CurveCell | None
    legacy_exceeded: bool
    functional: tuple[FunctionalError, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Difference:
    concurrency: int
    K_a: int
    K_b: int
    k: int
    difference: Estimate
    se: float | None
    freedom: int | None

    def p_beyond(self, delta: float) -> float:
        """p of |difference| > delta; 1 when the spread is unknown."""
        if self.se is None or self.difference.point is None:
            return 1.0
        if self.se == 0:
            beyond = abs(self.difference.point) - delta
            return max(1 - beyond, 0.0) ** self.difference.n if beyond > 0 else 1.0
        return exceedance_p(self.difference.point, self.se, delta, freedom=self.freedom)


def curve_gate(
    captures: Captures,
    *,
    resampling: Resampling,
    strata: ArrayLike | None = None,
    delta: float = DELTA,
    alpha: float = ALPHA,
) -> CurveGate:
    """Gate v1 over captures[concurrency][K] = histograms (prompts, K+1), rows the same prompts throughout.

    A row of zeros is a prompt that a capture lacks. Pool the blocks of launches before calling.
    """
    if delta <= 0:
        raise StatsError(f"margin {delta} is not above 0; the default is {DELTA}")
    curves = _curve_draws(captures, resampling, strata)
    found = list(_differences(captures, curves, strata, alpha))
    p_holm = holm([d.p_beyond(delta) for d in found])
    cells = tuple(_cell(d, p, delta, len(found)) for d, p in zip(found, p_holm, strict=True))
    word = gate_word([cell.inside for cell in cells], p_holm, alpha)
    return CurveGate(
        word=word,
        cells=cells,
        worst=max(cells, key=_reach, default=None),
        legacy_exceeded=any(abs(cell.difference.point or 0.0) > LEGACY_TOLERANCE for cell in cells),
        functional=tuple(_functional(captures, C, curves) for C in sorted(captures) if len(captures[C]) > 1),
        reason=_reason(word, cells, delta),
    )


def _curve_draws(
    captures: Captures, resampling: Resampling, strata: ArrayLike | None
) -> dict[tuple[int, int], FloatArray]:
    """S_1..S_K per (concurrency, K), shape (1 + draws, K): the observed curve, then the resampled ones."""
    keys = [(C, K) for C in sorted(captures) for K in sorted(captures[C]) if captures[C][K].any()]
    if not keys:
        return {}
    columns = np.hstack([tails(captures[C][K]) for C, K in keys]).astype(float)
    sums = np.vstack([columns.sum(axis=0), resampled_sums(columns, resampling=resampling, strata=strata)])
    parts = np.split(sums, np.cumsum([K + 1 for _, K in keys])[:-1], axis=1)
    return {key: quotient(part[:, 1:], part[:, :1]) for key, part in zip(keys, parts, strict=True)}


def _differences(
    captures: Captures,
    curves: Mapping[tuple[int, int], FloatArray],
    strata: ArrayLike | None,
    alpha: float,
) -> Iterator[_Difference]:
    pairs = [(a, b) for a in curves for b in curves if a[0] == b[0] and a[1] < b[1]]
    for (C, K_a), (_, K_b) in pairs:
        a, b = captures[C][K_a], captures[C][K_b]
        prompts = int((a.any(axis=1) | b.any(axis=1)).sum())
        for k in range(1, K_a + 1):
            draws = curves[C, K_a][:, k - 1] - curves[C, K_b][:, k - 1]
            # Draws that are all alike are no bootstrap: the linearised way tells agreement from lone prompts.
            if prompts >= BOOTSTRAP_FROM and not no_spread(draws[1:]):
                measured = _bootstrapped(draws, prompts, alpha)
            else:
                measured = _linearised(tails(a)[:, [k, 0]], tails(b)[:, [k, 0]], strata, alpha)
            yield _Difference(C, K_a, K_b, k, *measured)


def _unanimous(diff: float, prompts: int, alpha: float) -> Estimate:
    """Prompts that all differ alike have no spread to judge by: their agreement bounds what was not seen (2.3)."""
    half = unseen_share(prompts, alpha=alpha)
    return Estimate(diff, Interval(diff - half, diff + half, 1 - 2 * alpha), prompts, UNANIMOUS)


def _bootstrapped(draws: FloatArray, prompts: int, alpha: float) -> tuple[Estimate, float | None, int | None]:
    interval = percentile_interval(draws[1:], level=1 - 2 * alpha)
    if interval is None:
        return Estimate.bare(float(draws[0]), n=prompts, method=BOOTSTRAP, reason=NO_ROUNDS), None, None
    return Estimate(float(draws[0]), interval, prompts, BOOTSTRAP), float(draws[1:].std(ddof=1)), None


def _linearised(
    a: IntArray, b: IntArray, strata: ArrayLike | None, alpha: float
) -> tuple[Estimate, float | None, int | None]:
    """From (prompts, 2) columns of accepted and rounds; prompts without rounds in either run are left out."""
    used = (a[:, 1] > 0) | (b[:, 1] > 0)
    codes = stratum_codes(strata, clusters=len(a))[used]
    found = paired_ratio_diff(a[used, 0], na=a[used, 1], xb=b[used, 0], nb=b[used, 1], strata=codes)
    prompts, freedom = len(codes), len(codes) - len(np.unique(codes))
    diff, se = found["diff"] or 0.0, found["se"]
    if se is None or freedom < 1:
        reason = f"{prompts} prompts leave a stratum with fewer than two: its spread is unknown"
        return Estimate.bare(diff, n=prompts, method=LINEARISED, reason=reason), None, None
    if se <= NO_SPREAD:
        return _unanimous(diff, prompts, alpha), 0.0, freedom
    half = float(stats.t.ppf(1 - alpha, freedom)) * se
    return Estimate(diff, Interval(diff - half, diff + half, 1 - 2 * alpha), prompts, LINEARISED), se, freedom


def _cell(d: _Difference, p_holm: float, delta: float, cells: int) -> CurveCell:
    estimate = d.difference
    inside = estimate.interval is not None and estimate.interval.within(delta)
    needed = None if d.se is None else _needed(estimate.point or 0.0, estimate.n, d.se, delta, cells)
    return CurveCell(d.concurrency, d.K_a, d.K_b, d.k, estimate, d.se, inside, p_holm, needed)


def _needed(d: float, n: int, se: float, delta: float, cells: int) -> int | None:
    if se > 0:
        return n_needed(n, d=d, se=se, delta=delta, m=cells)
    gap = abs(delta - abs(d))
    alpha = ALPHA if abs(d) < delta else ALPHA / cells
    return min_prompts_zero_discordance(gap, alpha=alpha) if 0 < gap < 1 else None


def _reach(cell: CurveCell) -> float:
    """How far from 0 the cell's interval reaches; without one nothing is known, which is worst."""
    interval = cell.difference.interval
    return float("inf") if interval is None else max(abs(interval.lo), abs(interval.hi))


def _reason(word: GateWord, cells: Sequence[CurveCell], delta: float) -> str | None:
    if not cells:
        return "fewer than two depths were captured at one concurrency"
    if word is not GateWord.INCONCLUSIVE:
        return None
    outside = sum(not cell.inside for cell in cells)
    return f"{outside} of {len(cells)} cells are neither inside nor significantly outside a margin of {delta}"


def _functional(captures: Captures, concurrency: int, curves: Mapping[tuple[int, int], FloatArray]) -> FunctionalError:
    depths = sorted(K for C, K in curves if concurrency == C)
    if len(depths) < 2:
        missing = Estimate.missing("fewer than two depths were captured", method=BOOTSTRAP)
        return FunctionalError(concurrency, (), missing)
    prompts = int(captures[concurrency][depths[-1]].any(axis=1).sum())
    deepest = curves[concurrency, depths[-1]]
    errors = {
        K: quotient(1 + deepest[:, :K].sum(axis=1), 1 + curves[concurrency, K].sum(axis=1)) - 1 for K in depths[:-1]
    }
    worst = np.max(np.abs(np.stack(list(errors.values()))), axis=0)
    by_depth = tuple((K, _limits(error, prompts)) for K, error in errors.items())
    return FunctionalError(concurrency, by_depth, _limits(worst, prompts))


def _limits(draws: FloatArray, prompts: int) -> Estimate:
    """Observed value and two-sided 90 % interval of the draws after it."""
    interval = percentile_interval(draws[1:], level=0.90)
    return Estimate(
        float(draws[0]), interval, prompts, BOOTSTRAP, None if interval else no_interval_reason(draws[1:], NO_ROUNDS)
    )
