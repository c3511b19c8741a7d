"""Gate v2: the same prompt at the same text position, asked at two depths (method 2.3 and 2.4).

Where both runs start a round at the same place they answer the same question. Whether a place is aligned is decided by
what happened before it, so under K-invariance the differences are martingale increments: their sum is centred at zero
whatever selection the rounds went through. Everything is a join of (prompt, start) keys over whole captures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from kit.stats.arrays import FloatArray, IntArray, same_length
from kit.stats.errors import StatsError
from kit.stats.gates import ALPHA, exceedance_p
from kit.stats.intervals import linearised_se, ratio_residuals, stratum_codes
from kit.stats.lossless import cp_upper
from kit.stats.rounds import Rounds

__all__ = [
    "Aligned",
    "Decomposition",
    "Gate2Bound",
    "Gate2Cell",
    "Movement",
    "align",
    "decompose",
    "gate2_bound",
    "gate2_cell",
    "movement",
]

SPARSE_BELOW: Final = 10
NO_DIVERGENCE: Final = np.iinfo(np.int64).max

Starts = Mapping[str, int] | Mapping[int, int]


class Gate2Cell(TypedDict):
    """Aligned sites of two runs and the difference of acceptance there; X and M are per prompt."""

    sites: int
    discordant_prompts: int
    diff: float | None
    X: list[int]
    M: list[int]


class Gate2Bound(TypedDict):
    """Upper bound on |d2| with the rule that gave it, and the p of |d2| > delta."""

    n: int
    discordant: int
    diff: float | None
    se: float | None
    bound: float | None
    rule: str
    inside: bool
    p_fail: float


class Decomposition(TypedDict):
    """total = composition + boundary + behaviour, a movement of P(position 1 accepted) between two depths."""

    total: float | None
    composition: float | None
    behaviour: float | None
    boundary: float | None
    aligned_sites: int


@dataclass(frozen=True, slots=True)
class Aligned:
    """Aligned sites of two captures: prompt, accepted by a, accepted by b, all (sites,).

    `deeper_rounds` counts the rounds of the deeper run, aligned or not; `prompts` is the number of prompts captured.
    """

    prompt: IntArray
    accepted_a: IntArray
    accepted_b: IntArray
    deeper_rounds: int
    prompts: int

    @property
    def share(self) -> float | None:
        """Aligned share of the deeper run's rounds."""
        return len(self.prompt) / self.deeper_rounds if self.deeper_rounds else None

    def outcomes(self, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Whether position k was accepted at each site, by a and by b."""
        return self.accepted_a >= k, self.accepted_b >= k

    def sums(self, k: int) -> tuple[IntArray, IntArray]:
        """X (prompts,), the summed difference of outcomes, and M (prompts,), the aligned sites."""
        by_a, by_b = self.outcomes(k)
        X = np.bincount(self.prompt, by_a.astype(float) - by_b, minlength=self.prompts)
        return np.rint(X).astype(np.int64), np.bincount(self.prompt, minlength=self.prompts)


@dataclass(frozen=True, slots=True)
class Movement:
    """Why P(position 1 accepted) moved between two depths (method 2.4); the parts add up to `total`.

    between_classes and within_classes split the composition; behaviour is d2 and rests on the assumption that it is the
    same at sites that are not aligned.
    """

    total: float
    between_classes: float
    within_classes: float
    boundary: float
    behaviour: float
    sites: int


def align(a: Rounds, *, b: Rounds, prompts: int, divergence: ArrayLike | None = None) -> Aligned:
    """Sites where both runs start a round, before the first index at which their output ids differ.

    divergence (prompts,): that index per prompt, negative for none.
    """
    limit = np.full(prompts, -1) if divergence is None else np.asarray(divergence, np.int64)
    same_length(prompts=np.empty(prompts), divergence=limit)
    limit = np.where(limit < 0, NO_DIVERGENCE, limit)
    start_a, start_b = a.starts(), b.starts()
    # One integer per (prompt, start): the join is an intersection of two sorted key arrays.
    stride = 1 + max(start_a.max(initial=0), start_b.max(initial=0))
    _, in_a, in_b = np.intersect1d(
        a.prompt * stride + start_a, b.prompt * stride + start_b, assume_unique=True, return_indices=True
    )
    common = start_a[in_a] < limit[a.prompt[in_a]]
    in_a, in_b = in_a[common], in_b[common]
    deeper = a if a.active.max(initial=0) >= b.active.max(initial=0) else b
    return Aligned(a.prompt[in_a], a.accepted[in_a], b.accepted[in_b], len(deeper.prompt), prompts)


def gate2_cell(prompts: Sequence[Sequence[Any]], *, k: int) -> Gate2Cell:
    """Cell from [starts of a, starts of b, first divergence or None] per prompt, starts as {start: accepted}."""
    sums = [_prompt_sums(a, b, limit, k) for a, b, limit in prompts]
    X, M = [x for x, _ in sums], [m for _, m in sums]
    return Gate2Cell(
        sites=sum(M),
        discordant_prompts=sum(x != 0 for x in X),
        diff=sum(X) / sum(M) if sum(M) else None,
        X=X,
        M=M,
    )


def _prompt_sums(a: Starts, b: Starts, limit: int | None, k: int) -> tuple[int, int]:
    left, right = ({int(start): j for start, j in run.items()} for run in (a, b))
    sites = [s for s in left.keys() & right.keys() if limit is None or s < limit]
    return sum((left[s] >= k) - (right[s] >= k) for s in sites), len(sites)


def gate2_bound(
    X: ArrayLike, *, M: ArrayLike, delta: float, alpha: float = ALPHA, strata: ArrayLike | None = None
) -> Gate2Bound:
    """Bound on |d2| from per-prompt sums X and site counts M; prompts without sites are left out.

    Few discordant prompts make the standard error worthless, so below ten an exact prompt-level bound takes over; with
    none it needs 149 prompts to reach 0.02.
    """
    sums, sites = np.asarray(X, float), np.asarray(M, float)
    same_length(X=sums, M=sites)
    if not (0 < delta < 1 and (np.abs(sums) <= sites).all() and np.isfinite(sites).all()):
        raise StatsError(f"margin {delta} is not between 0 and 1, or a prompt differs at more sites than it has")
    used = sites > 0
    codes = stratum_codes(strata, clusters=len(sites))[used]
    sums, sites = sums[used], sites[used]
    n, discordant = len(sums), int((sums != 0).sum())
    if n == 0:
        return Gate2Bound(n=0, discordant=0, diff=None, se=None, bound=None, rule="no_sites", inside=False, p_fail=1.0)
    diff = float(sums.sum() / sites.sum())
    se = float(linearised_se(ratio_residuals(sums, sites)[:, None], codes=np.unique(codes, return_inverse=True)[1])[0])
    rule, bound = _bound(sums, sites, diff, se, alpha)
    p_fail = exceedance_p(diff, se, delta) if discordant and not np.isnan(se) else 1.0
    return Gate2Bound(
        n=n,
        discordant=discordant,
        diff=diff,
        se=None if np.isnan(se) else se,
        bound=bound,
        rule=rule,
        inside=bound is not None and bound < delta,
        p_fail=p_fail,
    )


def _bound(sums: FloatArray, sites: FloatArray, diff: float, se: float, alpha: float) -> tuple[str, float | None]:
    n, discordant = len(sums), int((sums != 0).sum())
    if discordant == 0:
        return "zero_discordance", 1 - alpha ** (1 / n)
    if np.isnan(se):
        return "lone_prompt", None
    wald = abs(diff) + float(stats.norm.ppf(1 - alpha)) * se
    if discordant >= SPARSE_BELOW:
        return "cluster", wald
    exact = (cp_upper(discordant, n=n, alpha=alpha) or 0.0) * float(np.abs(sums).max() / sites.mean())
    return "sparse", max(wald, exact)


def decompose(pr: Sequence[Mapping[str, Starts]]) -> Decomposition:
    """Three-way split of the movement of position 1 (method 2.4) from {"a": starts, "b": starts} per prompt."""
    cell = gate2_cell([[p["a"], p["b"], None] for p in pr], k=1)
    counts = np.array([_first_position(p["a"]) + _first_position(p["b"]) for p in pr], float).reshape(-1, 4)
    both = counts[(counts[:, 1] > 0) & (counts[:, 3] > 0)]
    if not len(both) or cell["diff"] is None:
        return Decomposition(total=None, composition=None, behaviour=None, boundary=None, aligned_sites=cell["sites"])
    composition, within = _kitagawa(*both.T)
    return Decomposition(
        total=composition + within,
        composition=composition,
        behaviour=cell["diff"],
        boundary=within - cell["diff"],
        aligned_sites=cell["sites"],
    )


def _first_position(run: Starts) -> tuple[int, int]:
    return sum(j >= 1 for j in run.values()), len(run)


def _kitagawa(xa: FloatArray, na: FloatArray, xb: FloatArray, nb: FloatArray) -> tuple[float, float]:
    """Symmetric split of sum xa / sum na - sum xb / sum nb into shifted weights and shifted rates (Kitagawa 1955)."""
    weight_a, weight_b = na / na.sum(), nb / nb.sum()
    rate_a, rate_b = xa / na, xb / nb
    composition = ((weight_a - weight_b) * (rate_a + rate_b) / 2).sum()
    within = ((weight_a + weight_b) / 2 * (rate_a - rate_b)).sum()
    return float(composition), float(within)


def movement(
    aligned: Aligned, *, hists_a: IntArray, hists_b: IntArray, strata: ArrayLike | None = None
) -> Movement | None:
    """Decomposition from per-prompt histograms (prompts, K+1) and aligned sites; None without both.

    Prompts that lack rounds in one run are left out of every part but behaviour.
    """
    present = hists_a.any(axis=1) & hists_b.any(axis=1)
    if not present.any() or not len(aligned.prompt):
        return None
    counts = np.stack([hists_a[:, 1:].sum(1), hists_a.sum(1), hists_b[:, 1:].sum(1), hists_b.sum(1)])[
        :, present
    ].astype(float)
    codes = stratum_codes(strata, clusters=len(hists_a))[present]
    composition, within = _kitagawa(*counts)
    classes = np.stack([np.bincount(codes, column) for column in counts])
    between, _ = _kitagawa(*classes[:, (classes[1] > 0) & (classes[3] > 0)])
    X, M = aligned.sums(1)
    behaviour = float(X.sum() / M.sum())
    return Movement(
        total=composition + within,
        between_classes=between,
        within_classes=composition - between,
        boundary=within - behaviour,
        behaviour=behaviour,
        sites=int(M.sum()),
    )
