"""Losslessness: token-exact comparison, ties told from violations, and a bound on what was not seen (method 4).

Two batch shapes reduce in different orders, so two runs of one configuration may part where the top two tokens tie.
An A/A control measures how wide such ties are (tau) and how often they flip; only a divergence wider than tau, or to
a token that was not the runner-up, speaks against the engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.errors import StatsError

__all__ = [
    "LosslessVerdict",
    "TieMargin",
    "cp_lower",
    "cp_upper",
    "divergence_class",
    "first_divergence",
    "lossless_verdict",
    "tau_from_aa",
]

# Mean margin at a benign divergence under Gaussian noise sigma and a flat margin density is sigma sqrt(2 pi) / 4.
MEAN_MARGIN_PER_SIGMA: Final = math.sqrt(2 * math.pi) / 4
TAU_FLOOR: Final = 0.01
TAU_SIGMAS: Final = 4.0
TAU_SLACK: Final = 1.25
EXCESS_ALPHA: Final = 0.001
BOUND_ALPHA: Final = 0.05


class TieMargin(TypedDict):
    """Noise of the top-2 margin and the largest margin that still counts as a tie, both in log-probability."""

    sigma: float
    tau: float


class LosslessVerdict(TypedDict):
    """Counts of prompts, one-sided bounds on their rates, and the word."""

    verdict: str
    diverged: int
    hard: int
    unknown: int
    p_rate: float | None
    diverged_upper: float | None
    hard_upper: float | None


def cp_upper(x: int, *, n: int, alpha: float = BOUND_ALPHA) -> float | None:
    """One-sided Clopper-Pearson upper limit of x successes in n; None for n = 0."""
    _check_count(x, n)
    if n == 0:
        return None
    return 1.0 if x == n else float(stats.beta.ppf(1 - alpha, x + 1, n - x))


def cp_lower(x: int, *, n: int, alpha: float = BOUND_ALPHA) -> float | None:
    """One-sided Clopper-Pearson lower limit of x successes in n; None for n = 0."""
    _check_count(x, n)
    if n == 0:
        return None
    return 0.0 if x == 0 else float(stats.beta.ppf(alpha, x, n - x + 1))


def _check_count(x: int, n: int) -> None:
    if not 0 <= x <= n:
        raise StatsError(f"{x} of {n} is not a count; check which requests were compared")


def first_divergence(a: ArrayLike, *, b: ArrayLike) -> int | None:
    """Length of the common prefix of two token sequences; None when they are equal."""
    left, right = np.asarray(a), np.asarray(b)
    shorter = min(len(left), len(right))
    differs = np.flatnonzero(left[:shorter] != right[:shorter])
    if len(differs):
        return int(differs[0])
    return None if len(left) == len(right) else shorter


def divergence_class(margin: float | None, *, rank: int | None, tau: float) -> str:
    """benign: the runner-up (rank 2) won within tau; hard: anything else; unknown: not recorded."""
    if margin is None or rank is None:
        return "unknown"
    return "benign" if rank == 2 and margin <= tau else "hard"


def tau_from_aa(margins: Sequence[float]) -> TieMargin:
    """Tie margin from the top-2 margins at the divergences of an A/A control (method 4.3)."""
    if any(margin < 0 for margin in margins):
        raise StatsError(f"negative top-2 margin {min(margins)}; a margin is first minus second log-probability")
    if not len(margins):
        return TieMargin(sigma=0.0, tau=TAU_FLOOR)
    sigma = math.fsum(margins) / len(margins) / MEAN_MARGIN_PER_SIGMA
    return TieMargin(sigma=sigma, tau=max(TAU_FLOOR, TAU_SIGMAS * sigma, TAU_SLACK * max(margins)))


def lossless_verdict(
    n: int,
    *,
    divergences: Sequence[Mapping[str, float | None]],
    tau: float,
    aa_n: int | None,
    aa_diverged: int | None,
) -> LosslessVerdict:
    """Verdict over n prompts, of which `divergences` ({margin, rank}) differ (method 4.4).

    `p_rate` is the one-sided Fisher p of diverging more often than the control; None without a control.
    """
    classes = [divergence_class(d["margin"], rank=_rank(d["rank"]), tau=tau) for d in divergences]
    diverged, hard, unknown = len(classes), classes.count("hard"), classes.count("unknown")
    p_rate = _excess_p(n, diverged, aa_n, aa_diverged)
    return LosslessVerdict(
        verdict=_word(n, diverged, hard, unknown, p_rate),
        diverged=diverged,
        hard=hard,
        unknown=unknown,
        p_rate=p_rate,
        diverged_upper=cp_upper(diverged, n=n),
        hard_upper=cp_upper(hard, n=n),
    )


def _rank(rank: float | None) -> int | None:
    return None if rank is None else int(rank)


def _excess_p(n: int, diverged: int, aa_n: int | None, aa_diverged: int | None) -> float | None:
    """Upper tail of the hypergeometric: P(at least `diverged` of the arm's n | both margins fixed)."""
    if not aa_n or aa_diverged is None:
        return None
    return float(stats.hypergeom.sf(diverged - 1, n + aa_n, diverged + aa_diverged, n))


def _word(n: int, diverged: int, hard: int, unknown: int, p_rate: float | None) -> str:
    if hard:
        return "VIOLATED"
    if n == 0:
        return "UNRESOLVED"
    if diverged == 0:
        return "LOSSLESS"
    settled = not unknown and p_rate is not None and p_rate >= EXCESS_ALPHA
    return "BENIGN_DIVERGENCE" if settled else "UNRESOLVED"
