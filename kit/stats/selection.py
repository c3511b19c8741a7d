"""Why P(position 1 accepted) moves with K when nothing about the draft moves: round-boundary selection (method 1.6).

K decides which text positions are round starts. In depth-free acceptance the starts at K_b are nested in those at K_a
whenever (K_a+1) divides (K_b+1), and the curve at K_a follows from the curve at K_b exactly. The residual of that
conversion (v1c) is a diagnostic that needs histograms only; it is not a gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import BoolArray, FloatArray, IntArray, quotient, same_length, tails
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate
from kit.stats.intervals import Resampling, no_interval_reason, percentile_interval, resampled_sums

__all__ = [
    "ConversionResidual",
    "Converted",
    "Mixture",
    "Walks",
    "conversion_residuals",
    "convert",
    "markov_q",
    "mixture",
    "walk",
    "walk_texts",
]

V1C_METHOD: Final = "paired stratified cluster bootstrap over prompts"


class Mixture(TypedDict):
    """Rounds drawn from groups of text: share of rounds per group, S_k for k = 1..K, tokens per round."""

    round_share: list[float]
    S: list[float]
    tokens_per_round: float


class Converted(TypedDict):
    """Curve at K_to implied by a deeper one, and rounds at K_to per round at K_from."""

    S: list[float]
    rounds_ratio: float


@dataclass(frozen=True, slots=True)
class Walks:
    """Rounds of replayed texts: text, start and accepted have shape (rounds,), resolved (texts,)."""

    text: IntArray
    start: IntArray
    accepted: IntArray
    resolved: BoolArray


@dataclass(frozen=True, slots=True)
class ConversionResidual:
    """S_k measured at K_to minus S_k implied by K_from, and the raw difference beside it."""

    K_from: int
    K_to: int
    k: int
    residual: Estimate
    raw_difference: Estimate


def walk(R: Sequence[int], *, K: int) -> list[list[int]]:
    """[start, accepted] of each round of depth K over run lengths R[s], from s = 0 to the end of the text."""
    walks = walk_texts(np.asarray(R, np.int64)[None], K=K, first=0)
    pairs: list[list[int]] = np.stack([walks.start, walks.accepted], axis=1).tolist()
    return pairs


def walk_texts(R: IntArray, *, K: int, first: int = 1) -> Walks:
    """Replay a static depth over run lengths R (texts, positions); -1 marks an unknown run (method 3.6).

    All texts advance together, so the loop runs over the rounds of one text, not of the capture. A walk that steps on
    an unknown run stops there, unresolved.
    """
    if K < 0:
        raise StatsError(f"depth K={K} is negative; give the number of drafts per round")
    texts, length = R.shape
    position = np.full(texts, first, np.int64)
    resolved = np.ones(texts, bool)
    steps = [np.empty((3, 0), np.int64)]
    alive = np.flatnonzero(position < length)
    while len(alive):
        run = R[alive, position[alive]]
        resolved[alive[run < 0]] = False
        alive, run = alive[run >= 0], run[run >= 0]
        taken = np.minimum(run, K)
        steps.append(np.stack([alive, position[alive], taken]))
        position[alive] += taken + 1
        alive = alive[position[alive] < length]
    text, start, accepted = np.concatenate(steps, axis=1)
    order = np.argsort(text, kind="stable")
    return Walks(text[order], start[order], accepted[order], resolved)


def mixture(pi: ArrayLike, *, p: ArrayLike, K: int) -> Mixture:
    """Pooled curve of groups with text shares pi and iid acceptance p: rounds go as pi / tau(K) (formula 1)."""
    share, rate = np.asarray(pi, float), np.asarray(p, float)
    same_length(pi=share, p=rate)
    if not ((share >= 0).all() and 0 < share.sum() < np.inf and ((rate >= 0) & (rate <= 1)).all()):
        raise StatsError(f"text shares {share.tolist()} or acceptance {rate.tolist()} out of range; both are shares")
    powers = rate[:, None] ** np.arange(1, K + 1)
    rounds = share / (1 + powers.sum(axis=1))
    rounds /= rounds.sum()
    curve = rounds @ powers
    return Mixture(round_share=rounds.tolist(), S=curve.tolist(), tokens_per_round=float(1 + curve.sum()))


def markov_q(a: float, *, b: float, K: int) -> float:
    """P(position 1 accepted) at depth K when acceptance is Markov: a after accepted, b after rejected (formula 2)."""
    if not (0 <= a <= 1 and 0 <= b <= 1 and K >= 1 and max(1 - a, b) > 0):
        raise StatsError(
            f"a={a}, b={b}, K={K}: acceptance is between 0 and 1 and not locked at a=1, b=0; K is 1 or more"
        )
    two_steps = a * a + (1 - a) * b
    return float(b / (1 - (two_steps - b) * a ** (K - 1)))


def convert(S: Sequence[float], *, K_from: int, K_to: int) -> Converted:
    """Curve at K_to that a depth-free process with curve S at K_from must have (formula 3).

    Raises StatsError unless (K_to+1) divides (K_from+1): other starts are not nested.
    """
    if len(S) != K_from:
        raise StatsError(f"{len(S)} survival values for depth {K_from}; give S_1..S_{K_from}")
    if not all(0 <= value <= 1 for value in S):
        raise StatsError(f"survival values {list(S)} are not all between 0 and 1; leave an undefined curve out")
    counts = _converted_counts(np.array([1.0, *S]), K_to)
    return Converted(S=(counts[1:] / counts[0]).tolist(), rounds_ratio=float(counts[0]))


def nested(K_from: int, K_to: int) -> bool:
    """Whether every round start at K_from is one at K_to in depth-free acceptance (theorem 1)."""
    return 0 <= K_to < K_from and (K_from + 1) % (K_to + 1) == 0


def _converted_counts(tail: FloatArray, K_to: int) -> FloatArray:
    """Tail counts (..., K_to+1) at K_to from tail counts (..., K_from+1); linear, so it holds pooled too."""
    K_from = tail.shape[-1] - 1
    if not nested(K_from, K_to):
        raise StatsError(f"K={K_from} is not nested in K={K_to}: (K_to+1) must divide (K_from+1)")
    counts: FloatArray = tail.reshape(*tail.shape[:-1], -1, K_to + 1).sum(axis=-2)
    return counts


def conversion_residuals(
    hists: Mapping[int, IntArray],
    *,
    resampling: Resampling,
    strata: ArrayLike | None = None,
    level: float = 0.95,
) -> tuple[ConversionResidual, ...]:
    """v1c for every nested pair of depths; hists[K] has shape (prompts, K+1), rows are the same prompts throughout."""
    found: list[ConversionResidual] = []
    for K_from, K_to in permutations(sorted(hists), 2):
        if nested(K_from, K_to) and hists[K_from].any() and hists[K_to].any():
            found += _pair_residuals(hists[K_from], hists[K_to], resampling, strata, level)
    return tuple(found)


def _pair_residuals(
    deep: IntArray, shallow: IntArray, resampling: Resampling, strata: ArrayLike | None, level: float
) -> list[ConversionResidual]:
    K_from, K_to = deep.shape[1] - 1, shallow.shape[1] - 1
    tail = tails(deep).astype(float)
    columns = np.hstack([tails(shallow), tail[:, : K_to + 1], _converted_counts(tail, K_to)])
    sums = np.vstack([columns.sum(axis=0), resampled_sums(columns, resampling=resampling, strata=strata)])
    measured, raw, implied = (quotient(part[:, 1:], part[:, :1]) for part in np.split(sums, 3, axis=1))
    return [
        ConversionResidual(
            K_from=K_from,
            K_to=K_to,
            k=k + 1,
            residual=_drawn(measured[:, k] - implied[:, k], len(columns), level),
            raw_difference=_drawn(measured[:, k] - raw[:, k], len(columns), level),
        )
        for k in range(K_to)
    ]


def _drawn(values: FloatArray, prompts: int, level: float) -> Estimate:
    """First entry: the point; the rest: bootstrap draws."""
    interval = percentile_interval(values[1:], level=level)
    reason = None if interval else no_interval_reason(values[1:], "some resamples held no rounds")
    return Estimate(float(values[0]), interval, prompts, V1C_METHOD, reason)
