"""Gate v2: is acceptance the same at equal positions? It explains gate v1 and can veto, never release (method 2.3).

A same-K control is required: it measures how often two launches of one depth disagree, and a pair of depths means
nothing apart from that floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.alignment import Aligned, Gate2Bound, gate2_bound
from kit.stats.curve_gate import DELTA
from kit.stats.estimate import Estimate, Interval
from kit.stats.gates import ALPHA, GateWord, gate_word, min_prompts_zero_discordance
from kit.stats.multiplicity import holm

__all__ = ["AlignedPair", "AlignmentCell", "AlignmentGate", "alignment_gate"]

MIN_ALIGNED_SHARE: Final = 0.5
METHOD: Final = "difference at aligned sites, clusters are prompts"


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """Two captures at one concurrency, joined by position; K_a = K_b makes it a control."""

    concurrency: int
    K_a: int
    K_b: int
    aligned: Aligned


@dataclass(frozen=True, slots=True)
class AlignmentCell:
    """d2 at position k of one pair, its bound, and the counts behind it.

    The McNemar table is (both, only_a, only_b, neither) over sites. `discordant_prompts` have a non-zero sum of
    differences, which is what the bound counts; `touched_prompts` have any site that differs.
    """

    concurrency: int
    K_a: int
    K_b: int
    k: int
    d2: Estimate
    bound: float | None
    rule: str
    inside: bool
    p_holm: float
    aligned_share: float | None
    sites: int
    both: int
    only_a: int
    only_b: int
    neither: int
    discordant_prompts: int
    touched_prompts: int

    @property
    def discordance(self) -> float | None:
        """Share of aligned sites at which the two runs differ; of a control, the noise floor."""
        return (self.only_a + self.only_b) / self.sites if self.sites else None

    @property
    def interpretable(self) -> bool:
        """Whether enough of the deeper run is aligned for d2 to speak for it."""
        return self.aligned_share is not None and self.aligned_share >= MIN_ALIGNED_SHARE


@dataclass(frozen=True, slots=True)
class AlignmentGate:
    """Verdict of gate v2, its cells, the control's cells and word, and the reason when it is inconclusive."""

    word: GateWord
    cells: tuple[AlignmentCell, ...]
    control: tuple[AlignmentCell, ...]
    control_word: GateWord | None
    reason: str | None


def alignment_gate(
    pairs: Sequence[AlignedPair],
    *,
    controls: Sequence[AlignedPair],
    strata: ArrayLike | None = None,
    delta: float = DELTA,
    alpha: float = ALPHA,
) -> AlignmentGate:
    """Gate v2 over pairs of depths against same-K controls; strata (prompts,) are the workload classes."""
    cells = _cells(pairs, strata, delta, alpha)
    control = _cells(controls, strata, delta, alpha)
    control_word = _word(control, alpha) if control else None
    word = _word(cells, alpha)
    reason = _reason(word, cells, control, control_word, delta)
    # Without a clean floor a pass claims too much; a failure on a failing control cannot be told from numerics.
    unclaimed = (word is GateWord.PASS and control_word is None) or control_word is GateWord.FAIL
    return AlignmentGate(
        word=GateWord.INCONCLUSIVE if unclaimed else word,
        cells=cells,
        control=control,
        control_word=control_word,
        reason=reason,
    )


def _word(cells: Sequence[AlignmentCell], alpha: float) -> GateWord:
    inside = [cell.inside and cell.interpretable for cell in cells]
    return gate_word(inside, [cell.p_holm for cell in cells if cell.interpretable], alpha)


def _cells(
    pairs: Sequence[AlignedPair], strata: ArrayLike | None, delta: float, alpha: float
) -> tuple[AlignmentCell, ...]:
    found = [(pair, k) for pair in pairs for k in range(1, min(pair.K_a, pair.K_b) + 1)]
    bounds = [_bound(pair.aligned, k, strata, delta, alpha) for pair, k in found]
    p_holm = holm([bound["p_fail"] for bound in bounds])
    return tuple(_cell(pair, k, bound, p, alpha) for (pair, k), bound, p in zip(found, bounds, p_holm, strict=True))


def _bound(aligned: Aligned, k: int, strata: ArrayLike | None, delta: float, alpha: float) -> Gate2Bound:
    X, M = aligned.sums(k)
    return gate2_bound(X, M=M, delta=delta, alpha=alpha, strata=strata)


def _cell(pair: AlignedPair, k: int, bound: Gate2Bound, p_holm: float, alpha: float) -> AlignmentCell:
    by_a, by_b = pair.aligned.outcomes(k)
    touched = np.unique(pair.aligned.prompt[by_a != by_b])
    return AlignmentCell(
        concurrency=pair.concurrency,
        K_a=pair.K_a,
        K_b=pair.K_b,
        k=k,
        d2=_d2(bound, alpha),
        bound=bound["bound"],
        rule=bound["rule"],
        inside=bound["inside"],
        p_holm=p_holm,
        aligned_share=pair.aligned.share,
        sites=len(by_a),
        both=int((by_a & by_b).sum()),
        only_a=int((by_a & ~by_b).sum()),
        only_b=int((~by_a & by_b).sum()),
        neither=int((~by_a & ~by_b).sum()),
        discordant_prompts=bound["discordant"],
        touched_prompts=len(touched),
    )


def _d2(bound: Gate2Bound, alpha: float) -> Estimate:
    """d2 with the two-sided 1 - 2 alpha interval: the cluster one, or what an exact bound on |d2| leaves."""
    if bound["diff"] is None:
        return Estimate.missing("no aligned sites", method=METHOD)
    if bound["bound"] is None or bound["se"] is None:
        reason = "one prompt with aligned sites, or one in a stratum: its spread is unknown"
        return Estimate.bare(bound["diff"], n=bound["n"], method=METHOD, reason=reason)
    half = float(stats.norm.ppf(1 - alpha)) * bound["se"]
    lo, hi = bound["diff"] - half, bound["diff"] + half
    if bound["rule"] != "cluster":
        lo, hi = -bound["bound"], bound["bound"]
    return Estimate(bound["diff"], Interval(lo, hi, 1 - 2 * alpha), bound["n"], METHOD)


def _reason(
    word: GateWord,
    cells: Sequence[AlignmentCell],
    control: Sequence[AlignmentCell],
    control_word: GateWord | None,
    delta: float,
) -> str | None:
    """Why the gate is inconclusive, the first cause that applies."""
    if not cells:
        return "no pair of depths was aligned"
    if control_word is GateWord.FAIL:
        worst = max(control, key=lambda cell: abs(cell.d2.point or 0.0))
        return f"two launches at K={worst.K_a} already differ by {worst.d2.point:+.4f}: not told from numerics"
    if word is GateWord.PASS and control_word is None:
        return "no same-K control was captured"
    if word is not GateWord.INCONCLUSIVE:
        return None
    return next(_doubts(cells, delta), "the bounds are too wide for the margin")


def _doubts(cells: Sequence[AlignmentCell], delta: float) -> Iterator[str]:
    for cell in cells:
        if not cell.interpretable:
            share = 0.0 if cell.aligned_share is None else cell.aligned_share
            yield f"K={cell.K_a} and K={cell.K_b} share {share:.0%} of the deeper run's rounds, below 50%"
    for cell in cells:
        if cell.rule == "zero_discordance" and not cell.inside:
            needed = min_prompts_zero_discordance(delta)
            yield f"exactly concordant on {cell.d2.n} prompts; {needed} are needed for a bound of {delta}"
