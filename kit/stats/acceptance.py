"""Acceptance at one fixed depth K, from histograms of accepted drafts per verify round (method 1.2 and 1.3).

S_k = P(j >= k) is the survival of position k, a_k its conditional acceptance, tau = 1 + sum S_k the tokens per round
with the bonus. The functions named by the test vectors take lists and return plain numbers; `survival_curve` takes
the per-prompt array and returns estimates. At one K every round has the same censoring depth, so nothing is lost
by pooling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import IntArray, histogram_matrix, optional, quotient, tails
from kit.stats.estimate import Estimate
from kit.stats.intervals import share_intervals

__all__ = [
    "Convention",
    "Overshoot",
    "Survival",
    "SurvivalCurve",
    "convention",
    "detect_convention",
    "last_round_bounds",
    "macro",
    "overshoot",
    "pooled",
    "survival",
    "survival_curve",
]

# Enough requests, each with a real chance of a cut, for "never cut" to mean "cut before counting" (method 1.3).
TRUNCATION_EVIDENCE: Final = 50
TRUNCATION_MIN_K: Final = 3


class Survival(TypedDict):
    """Acceptance of one histogram; lists run over k = 1..K, None means undefined."""

    n_rounds: int
    S: list[float] | None
    a: list[float | None] | None
    mean_accepted: float | None
    tokens_per_round: float | None
    tokens_per_position: float | None


class Overshoot(TypedDict):
    """Tokens that the histogram accounts for beyond the response, and what that says."""

    overshoot: int
    status: str


class Convention(StrEnum):
    """Whether the server counts the finishing round before or after cutting the output."""

    UNTRUNCATED = "untruncated"
    TRUNCATED = "truncated"
    UNKNOWN = "truncated_or_aligned"
    INCONSISTENT = "inconsistent"


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """Acceptance of one cell over rounds (survival, conditional, tokens) and over requests (macro); k = 1..K."""

    depth: int
    rounds: int
    prompts: int
    survival: tuple[Estimate, ...]
    conditional: tuple[Estimate, ...]
    macro: tuple[Estimate, ...]
    tokens_per_round: Estimate
    tokens_per_position: Estimate


def survival(h: Sequence[int], *, K: int) -> Survival:
    """S_k, a_k and tau of one histogram h[0..K]; everything is None without rounds."""
    tail = tails(histogram_matrix([h], K=K)[0])
    rounds = int(tail[0])
    if rounds == 0:
        return Survival(n_rounds=0, S=None, a=None, mean_accepted=None, tokens_per_round=None, tokens_per_position=None)
    mean_accepted = float(tail[1:].sum() / rounds)
    return Survival(
        n_rounds=rounds,
        S=(tail[1:] / rounds).tolist(),
        a=optional(quotient(tail[1:], tail[:-1])),
        mean_accepted=mean_accepted,
        tokens_per_round=1 + mean_accepted,
        tokens_per_position=(1 + mean_accepted) / (K + 1),
    )


def pooled(hs: Iterable[Sequence[int]], *, K: int) -> list[float] | None:
    """S_k over rounds: histograms are added first."""
    return survival(histogram_matrix(hs, K=K).sum(axis=0).tolist(), K=K)["S"]


def macro(hs: Iterable[Sequence[int]], *, K: int) -> list[float] | None:
    """S_k over requests: the per-request values averaged with equal weight, requests without rounds left out."""
    tail = tails(histogram_matrix(hs, K=K))
    used = tail[tail[:, 0] > 0]
    if not len(used):
        return None
    means: list[float] = (used[:, 1:] / used[:, :1]).mean(axis=0).tolist()
    return means


def overshoot(h: Sequence[int], *, completion_tokens: int, K: int) -> Overshoot:
    """o = 1 + sum (j+1) h[j] - completion_tokens: 0 exact, 1..K a final round cut at the end, else inconsistent."""
    counts = histogram_matrix([h], K=K)[0]
    excess = 1 + int(counts @ np.arange(1, K + 2)) - completion_tokens
    return Overshoot(overshoot=excess, status=_cut_status(excess, K))


def _cut_status(excess: int, K: int) -> str:
    if excess == 0:
        return "exact"
    return "final_round_cut" if 0 < excess <= K else "inconsistent"


def convention(overs: Iterable[Sequence[int]]) -> str:
    """How the finishing round is counted, from [overshoot, K] pairs; all zero does not tell."""
    pairs = np.array([tuple(pair) for pair in overs], dtype=np.int64).reshape(-1, 2)
    excess, depth = pairs[:, 0], pairs[:, 1]
    if ((excess < 0) | (excess > depth)).any():
        return Convention.INCONSISTENT.value
    return (Convention.UNTRUNCATED if excess.any() else Convention.UNKNOWN).value


def detect_convention(overs: Iterable[Sequence[int]]) -> Convention:
    """`convention`, decided as truncated when 50 requests with K >= 3 never overshoot (method 1.3)."""
    pairs = [(int(excess), int(depth)) for excess, depth in overs]
    found = Convention(convention(pairs))
    telling = sum(depth >= TRUNCATION_MIN_K for _, depth in pairs)
    if found is Convention.UNKNOWN and telling >= TRUNCATION_EVIDENCE:
        return Convention.TRUNCATED
    return found


def last_round_bounds(h: Sequence[int], *, K: int) -> list[list[float]] | None:
    """[low, high] of each S_k when one round, of unknown bin, was cut by the end of the text (method 1.3)."""
    tail = tails(histogram_matrix([h], K=K)[0])
    rest = int(tail[0]) - 1
    if rest < 1:
        return None
    return [[max(x - 1, 0) / rest, min(x, rest) / rest] for x in tail[1:].tolist()]


def survival_curve(hists: IntArray, *, strata: ArrayLike | None = None, level: float = 0.95) -> SurvivalCurve:
    """Curve with intervals from per-prompt histograms (prompts, K+1); a row of zeros is a prompt not in the cell."""
    tail = tails(hists).astype(float)
    depth = tail.shape[1] - 1
    rounds, present = tail[:, :1], tail[:, 0] > 0
    # j is the number of positions that survived; tokens per round are 1 + K times the share of accepted drafts.
    accepted = tail[:, 1:].sum(axis=1, keepdims=True)
    over = np.hstack([tail[:, 1:], tail[:, 1:], accepted])
    under = np.hstack([np.repeat(rounds, depth, axis=1), tail[:, :-1], depth * rounds])
    kept = None if strata is None else np.asarray(strata)[present]
    *estimates, drafts = share_intervals(over[present], n=under[present], strata=kept, level=level)
    tokens = drafts.mapped(lambda share: 1 + depth * share)
    shares = tail[present, 1:] / rounds[present]
    return SurvivalCurve(
        depth=depth,
        rounds=int(rounds.sum()),
        prompts=int(present.sum()),
        survival=tuple(estimates[:depth]),
        conditional=tuple(estimates[depth:]),
        macro=share_intervals(shares, n=np.ones_like(shares), strata=kept, level=level),
        tokens_per_round=tokens,
        tokens_per_position=tokens.mapped(lambda value: value / (depth + 1)),
    )
