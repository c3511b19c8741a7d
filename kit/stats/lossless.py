"""Losslessness: token-exact comparison, ties told from violations, and a bound on what was not seen (method 4).

Two batch shapes reduce in different orders, so two runs of one configuration may part where the top two tokens tie.
An A/A control measures how wide such ties are (tau) and how often they flip; only a divergence wider than tau, or to
a token that was not the runner-up, speaks against the engine. Verify and decode are different kernel paths, so such a
divergence is asked again by prefill on the baseline server before it counts as a violation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kit.stats.arrays import finite, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate, Interval

__all__ = [
    "Control",
    "Divergence",
    "LosslessVerdict",
    "LosslessWord",
    "Losslessness",
    "TieMargin",
    "cp_lower",
    "cp_upper",
    "divergence_class",
    "first_divergence",
    "lossless_verdict",
    "losslessness",
    "prefill_spread",
    "rate_limits",
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


class LosslessWord(StrEnum):
    """What may be said about an arm's outputs."""

    LOSSLESS = "LOSSLESS"
    BENIGN_DIVERGENCE = "BENIGN_DIVERGENCE"
    UNRESOLVED = "UNRESOLVED"
    VIOLATED = "VIOLATED"


@dataclass(frozen=True, slots=True)
class Divergence:
    """One prompt whose output parts from the reference.

    margin: top-2 margin of the reference there; rank: the reference's rank of the other token; prefill_margin: the
    baseline's margin when the common prefix is prefilled, None when that was not asked.
    """

    margin: float | None
    rank: int | None
    prefill_margin: float | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An A/A comparison of the baseline with itself: prompts compared and prompts that diverged."""

    prompts: int
    diverged: int


@dataclass(frozen=True, slots=True)
class Losslessness:
    """The verdict over prompts, with two-sided 90 % limits (one-sided 95 %) on the rates.

    hard: divergences no tie explains; of these `violations` survived adjudication, `excused` were within the prefill
    spread, and the rest could not be adjudicated. excess_p: one-sided Fisher p against the control.
    """

    word: LosslessWord
    prompts: int
    diverged: int
    hard: int
    violations: int
    excused: int
    unknown: int
    tau: float
    diverged_rate: Estimate
    hard_rate: Estimate
    excess_p: float | None
    reason: str | None


def cp_upper(x: int, *, n: int, alpha: float = BOUND_ALPHA) -> float | None:
    """One-sided Clopper-Pearson upper limit of x successes in n; None for n = 0."""
    _check_count(x, n, alpha)
    if n == 0:
        return None
    return 1.0 if x == n else float(stats.beta.ppf(1 - alpha, x + 1, n - x))


def cp_lower(x: int, *, n: int, alpha: float = BOUND_ALPHA) -> float | None:
    """One-sided Clopper-Pearson lower limit of x successes in n; None for n = 0."""
    _check_count(x, n, alpha)
    if n == 0:
        return None
    return 0.0 if x == 0 else float(stats.beta.ppf(alpha, x, n - x + 1))


def _check_count(x: int, n: int, alpha: float = BOUND_ALPHA) -> None:
    if not 0 < alpha < 1:
        raise StatsError(f"alpha {alpha} is not between 0 and 1; 5 % is 0.05")
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
    if margin is None or rank is None or math.isnan(margin):
        return "unknown"
    return "benign" if rank == 2 and margin <= tau else "hard"


def tau_from_aa(margins: Sequence[float]) -> TieMargin:
    """Tie margin from the top-2 margins at the divergences of an A/A control (method 4.3)."""
    wrong = [margin for margin in margins if not 0 <= margin < math.inf]
    if wrong:
        raise StatsError(
            f"top-2 margin {wrong[0]} is negative or no number; a margin is first minus second log-probability"
        )
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
        verdict=_word(n, diverged, hard, unknown, p_rate).value,
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
    _check_count(aa_diverged, aa_n)
    _check_count(diverged, n)
    return float(stats.hypergeom.sf(diverged - 1, n + aa_n, diverged + aa_diverged, n))


def _word(n: int, diverged: int, hard: int, unknown: int, p_rate: float | None) -> LosslessWord:
    if hard:
        return LosslessWord.VIOLATED
    if n == 0:
        return LosslessWord.UNRESOLVED
    if diverged == 0:
        return LosslessWord.LOSSLESS
    settled = not unknown and p_rate is not None and p_rate >= EXCESS_ALPHA
    return LosslessWord.BENIGN_DIVERGENCE if settled else LosslessWord.UNRESOLVED


def prefill_spread(decode_margins: ArrayLike, *, prefill_margins: ArrayLike) -> float | None:
    """How far a margin may differ between decode and prefill of one text on one server, by tau's rule.

    Both (positions,); None without positions.
    """
    decoded, prefilled = np.asarray(decode_margins, float), np.asarray(prefill_margins, float)
    finite(decode_margins=decoded, prefill_margins=prefilled)
    same_length(decode_margins=decoded, prefill_margins=prefilled)
    difference = np.abs(decoded - prefilled)
    if not len(difference):
        return None
    # The sd of a centred difference, estimated without its mean: a shift between the paths is part of the spread.
    sigma = math.sqrt(float((difference**2).mean()))
    return max(TAU_FLOOR, TAU_SIGMAS * sigma, TAU_SLACK * float(difference.max()))


def losslessness(
    divergences: Sequence[Divergence], *, prompts: int, tau: float, control: Control | None, spread: float | None
) -> Losslessness:
    """Verdict over prompts of which `divergences` part from the reference, with hard ones adjudicated.

    tau: tie margin of the control; spread: prefill against decode on the baseline server (`prefill_spread`). A hard
    divergence is a violation when its prefill margin exceeds the spread too, unresolved when either is missing.
    """
    classes = [divergence_class(d.margin, rank=d.rank, tau=tau) for d in divergences]
    hard = [d for d, found in zip(divergences, classes, strict=True) if found == "hard"]
    survived = [_survives(d, spread) for d in hard]
    violations, excused = survived.count(True), survived.count(False)
    open_cases = classes.count("unknown") + survived.count(None)
    excess_p = None if control is None else _excess_p(prompts, len(classes), control.prompts, control.diverged)
    word = _word(prompts, len(classes), violations, open_cases, excess_p)
    return Losslessness(
        word=word,
        prompts=prompts,
        diverged=len(classes),
        hard=len(hard),
        violations=violations,
        excused=excused,
        unknown=classes.count("unknown"),
        tau=tau,
        diverged_rate=rate_limits(len(classes), n=prompts),
        hard_rate=rate_limits(len(hard), n=prompts),
        excess_p=excess_p,
        reason=_open_reason(prompts, open_cases, excess_p) if word is LosslessWord.UNRESOLVED else None,
    )


def _survives(divergence: Divergence, spread: float | None) -> bool | None:
    if divergence.prefill_margin is None or spread is None:
        return None
    return divergence.prefill_margin > spread


def _open_reason(prompts: int, open_cases: int, excess_p: float | None) -> str:
    if prompts == 0:
        return "no prompt was compared"
    if open_cases:
        return f"{open_cases} divergences lack a margin, a rank or the prefill that adjudicates them"
    if excess_p is None:
        return "no A/A control says how often ties flip"
    return f"diverges more often than the A/A control (Fisher p = {excess_p:.2g})"


def rate_limits(x: int, *, n: int) -> Estimate:
    """Rate x / n with both one-sided 95 % Clopper-Pearson limits, i.e. a 90 % interval."""
    lower, upper = cp_lower(x, n=n), cp_upper(x, n=n)
    if lower is None or upper is None:
        return Estimate.missing("no prompt was compared", method="Clopper-Pearson")
    return Estimate(x / n, Interval(lower, upper, 1 - 2 * BOUND_ALPHA), n, "Clopper-Pearson")
