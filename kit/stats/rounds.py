"""Ordered verify rounds as flat arrays: where each round starts, and whether a trace can be trusted (method 1.4).

A trace is untrusted, request by request, unless its rows reproduce the response's histogram exactly and account for
its tokens. All checks are array operations over the rounds of a whole capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from kit.stats.arrays import BoolArray, IntArray, histogram_matrix, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate

__all__ = ["Reconciled", "Reconciliation", "Rounds", "reconcile", "reconcile_rounds", "starts"]

MAX_UNTRUSTED_SHARE: Final = 0.05


class Reconciled(TypedDict):
    """ok, ok_trailing_dropped or untrusted; whether K=0 rows sit in histogram bin 0 (None: there are none)."""

    status: str
    k0_counted: bool | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds of one capture, grouped by request and in time order inside each request.

    prompt: request index 0..P-1 (one request per prompt in a capture); active: depth in force, 0 for a plain step;
    accepted: drafts accepted. All have shape (rounds,).
    """

    prompt: IntArray
    active: IntArray
    accepted: IntArray

    @classmethod
    def of(cls, prompt: ArrayLike, *, active: ArrayLike, accepted: ArrayLike) -> Self:
        """Rounds from columns in time order; a scalar `active` means one static depth."""
        owner, taken = np.asarray(prompt, np.int64), np.asarray(accepted, np.int64)
        depth = np.broadcast_to(np.asarray(active, np.int64), owner.shape)
        same_length(prompt=owner, accepted=taken)
        if (owner < 0).any():
            raise StatsError(f"request index {owner.min()} is negative; number the requests from 0")
        if (taken < 0).any() or (taken > depth).any():
            raise StatsError(
                "a round accepted more drafts than its depth, or fewer than none; reconcile the trace first"
            )
        order = np.argsort(owner, kind="stable")
        return cls(owner[order], depth[order], taken[order])

    def starts(self) -> IntArray:
        """Tokens already generated when each round starts; the first token of a request comes from prefill."""
        return 1 + _offsets(self.prompt, self.accepted + 1)

    def histograms(self, *, prompts: int, K: int) -> IntArray:
        """Accepted drafts per request as (prompts, K+1); rounds without drafts (active 0) are not counted."""
        drafted = self.active > 0
        if self.prompt.max(initial=-1) >= prompts:
            raise StatsError(f"request index {self.prompt.max()} is beyond the {prompts} prompts; count them all")
        if (self.accepted[drafted] > K).any():
            raise StatsError(f"a round accepted more than K={K}; the capture is not at the depth it claims")
        cell = self.prompt[drafted] * (K + 1) + self.accepted[drafted]
        return np.bincount(cell, minlength=prompts * (K + 1)).reshape(prompts, K + 1)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Outcome per request, shape (requests,), and per row, shape (rows,), in the order the rows were given.

    `trusted` requests may be used with the rows in `keep`; `trailing` ones lost one finished row that reappeared;
    `k0_counted` is 1 or 0 when K=0 rows do or do not sit in bin 0, -1 when there are none.
    """

    trusted: BoolArray
    trailing: BoolArray
    k0_counted: IntArray
    keep: BoolArray

    @property
    def untrusted_share(self) -> Estimate:
        """Share of requests whose trace is dropped."""
        if not len(self.trusted):
            return Estimate.missing("no request was traced", method="count")
        share = 1 - float(self.trusted.mean())
        return Estimate.bare(share, n=len(self.trusted), method="count", reason="every request was checked")

    @property
    def refused(self) -> bool:
        """Whether so many requests are untrusted (5 %) that the rest are no sample of the workload."""
        share = self.untrusted_share.point
        return share is None or share > MAX_UNTRUSTED_SHARE


def starts(accepted: Sequence[int]) -> list[int]:
    """Start positions of the rounds of one request: s_1 = 1, s_{n+1} = s_n + j_n + 1."""
    steps = np.asarray(accepted, np.int64) + 1
    positions: list[int] = (1 + np.cumsum(steps) - steps).tolist()
    return positions


def _offsets(group: IntArray, steps: IntArray) -> IntArray:
    """Exclusive cumulative sum of `steps` that restarts with each group; groups are contiguous."""
    before = np.cumsum(steps) - steps
    first = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(np.append(first, len(group)))
    offsets: IntArray = before - np.repeat(before[first], lengths)
    return offsets


def reconcile(rounds: Sequence[Sequence[int]], *, hist: Sequence[int], completion_tokens: int, Kmax: int) -> Reconciled:
    """Check one request's [active depth, accepted] rows against its histogram and token count."""
    rows = np.array([tuple(row) for row in rounds], np.int64).reshape(-1, 2)
    outcome = reconcile_rounds(
        np.zeros(len(rows), np.int64),
        active=rows[:, 0],
        accepted=rows[:, 1],
        hists=histogram_matrix([hist], K=Kmax),
        completion_tokens=[completion_tokens],
    )
    counted = int(outcome.k0_counted[0])
    if not outcome.trusted[0]:
        return Reconciled(status="untrusted", k0_counted=None)
    status = "ok_trailing_dropped" if outcome.trailing[0] else "ok"
    return Reconciled(status=status, k0_counted=None if counted < 0 else bool(counted))


def reconcile_rounds(
    request: ArrayLike, *, active: ArrayLike, accepted: ArrayLike, hists: IntArray, completion_tokens: ArrayLike
) -> Reconciliation:
    """Check every request of a capture; rows are in time order inside each request.

    hists has shape (requests, Kmax+1), completion_tokens (requests,). Four readings are tried in order: all rows,
    then without the last; each with K=0 rows outside bin 0, then inside.
    """
    tokens = np.asarray(completion_tokens, np.int64)
    owner, depth, taken = (np.asarray(column, np.int64) for column in (request, active, accepted))
    rows = _Rows(owner, depth, taken, requests=hists.shape[0], bins=hists.shape[1])
    same_length(request=rows.request, active=rows.active, accepted=rows.accepted)
    same_length(hists=hists, completion_tokens=tokens)
    whole, plain = rows.reading(hists, tokens, rows.request >= 0)
    is_last = rows.is_last()
    without_last, plain_without = rows.reading(hists, tokens, ~is_last)
    trailing = np.asarray(~whole.any(axis=0) & without_last.any(axis=0), bool)
    outside, inside = np.where(trailing, without_last, whole)
    trusted = np.asarray((outside | inside) & rows.possible(), bool)
    k0_rows = trusted & np.where(trailing, plain_without, plain)
    counted = np.where(k0_rows, np.where(outside, 0, 1), -1)
    keep = trusted[owner] & ~(is_last & trailing[owner])
    return Reconciliation(trusted, trusted & trailing, counted, keep)


@dataclass(frozen=True, slots=True)
class _Rows:
    request: IntArray
    active: IntArray
    accepted: IntArray
    requests: int
    bins: int

    def possible(self) -> BoolArray:
        """Requests none of whose rows accepted more than its depth or went deeper than the histogram."""
        wrong = (self.accepted < 0) | (self.accepted > self.active) | (self.active >= self.bins)
        return np.asarray(np.bincount(self.request[wrong], minlength=self.requests) == 0, bool)

    def is_last(self) -> BoolArray:
        """Rows that are the last of their request."""
        position = np.full(self.requests, -1, np.int64)
        np.maximum.at(position, self.request, np.arange(len(self.request)))
        last = np.zeros(len(self.request), bool)
        last[position[position >= 0]] = True
        return last

    def reading(self, hists: IntArray, tokens: IntArray, used: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Whether the used rows account for histogram and tokens, K=0 rows outside bin 0 or inside: (2, requests).

        Second: which requests have K=0 rows at all.
        """
        plain = np.bincount(self.request[used & (self.active == 0)], minlength=self.requests)
        drafted = used & (self.active > 0)
        # Impossible rows are clipped only to keep the index legal: their request is untrusted already.
        cell = self.request[drafted] * self.bins + np.clip(self.accepted[drafted], 0, self.bins - 1)
        counts = np.bincount(cell, minlength=self.requests * self.bins).reshape(self.requests, self.bins)
        overshoot = 1 + plain + counts @ np.arange(1, self.bins + 1) - tokens
        fits = (overshoot >= 0) & (overshoot < self.bins)
        outside = (counts == hists).all(axis=1)
        counts[:, 0] += plain
        inside = (counts == hists).all(axis=1)
        return np.stack([fits & outside, fits & inside]), plain > 0
