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
        """Share of requests dropped; it carries a reason, hence refuses the trace, above 5 %."""
        if not len(self.trusted):
            return Estimate.missing("no request was traced", method="count")
        share = 1 - float(self.trusted.mean())
        bare = "a count, not a sample"
        reason = bare if share <= MAX_UNTRUSTED_SHARE else f"{share:.1%} of requests untrusted: trace refused"
        return Estimate.bare(share, n=len(self.trusted), method="count", reason=reason)

    @property
    def refused(self) -> bool:
        """Whether so many requests are untrusted that the rest are no sample of the workload."""
        return not len(self.trusted) or 1 - float(self.trusted.mean()) > MAX_UNTRUSTED_SHARE


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
    rows = _Rows(np.asarray(request, np.int64), np.asarray(active, np.int64), np.asarray(accepted, np.int64))
    requests, depth = hists.shape[0], hists.shape[1] - 1
    tokens = np.asarray(completion_tokens, np.int64)
    same_length(request=rows.request, active=rows.active, accepted=rows.accepted)
    same_length(hists=hists, completion_tokens=tokens)
    possible = rows.possible(requests, depth)
    trusted, trailing = np.zeros(requests, bool), np.zeros(requests, bool)
    counted = np.full(requests, -1, np.int64)
    last = rows.is_last(requests)
    for drop in (False, True):
        used = ~last if drop else np.ones(len(last), bool)
        plain = rows.counts(used & (rows.active == 0), requests, depth)[:, 0]
        drafted = rows.counts(used & (rows.active > 0), requests, depth)
        emitted = 1 + plain + drafted @ np.arange(1, depth + 2)
        fits = possible & ~trusted & (tokens <= emitted) & (emitted <= tokens + depth)
        outside = fits & (drafted == hists).all(axis=1)
        drafted[:, 0] += plain
        inside = fits & ~outside & (drafted == hists).all(axis=1)
        counted[(outside | inside) & (plain > 0)] = 0
        counted[inside & (plain > 0)] = 1
        trusted |= outside | inside
        trailing |= (outside | inside) & drop
    keep = trusted[rows.request] & ~(last & trailing[rows.request])
    return Reconciliation(trusted, trailing, counted, keep)


@dataclass(frozen=True, slots=True)
class _Rows:
    request: IntArray
    active: IntArray
    accepted: IntArray

    def possible(self, requests: int, depth: int) -> BoolArray:
        wrong = (self.accepted < 0) | (self.accepted > self.active) | (self.active > depth)
        possible: BoolArray = np.bincount(self.request[wrong], minlength=requests) == 0
        return possible

    def is_last(self, requests: int) -> BoolArray:
        position = np.full(requests, -1, np.int64)
        np.maximum.at(position, self.request, np.arange(len(self.request)))
        last = np.zeros(len(self.request), bool)
        last[position[position >= 0]] = True
        return last

    def counts(self, chosen: BoolArray, requests: int, depth: int) -> IntArray:
        # Impossible rows are clipped only to keep the index legal: their request is untrusted already.
        cell = self.request[chosen] * (depth + 1) + np.clip(self.accepted[chosen], 0, depth)
        return np.bincount(cell, minlength=requests * (depth + 1)).reshape(requests, depth + 1)
