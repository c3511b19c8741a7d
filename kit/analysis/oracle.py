"""What choosing K could gain, where the gates allow it to be said (method 3).

Two oracles share policies and splits. The curve oracle reads tokens per round at a shallow depth off the deepest
curve; the replay oracle takes them from each depth's own capture of the same requests, which is an exact replay if
the draft does not depend on K, so it needs a pass of gate v2 and no pass of v1. Waves of one concurrency are the
batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kit.analysis.acceptance_results import Gates
from kit.analysis.accounting import Accounts
from kit.analysis.cost import fitted
from kit.analysis.cost_results import Costs, Oracle, OracleKind, OracleLevel
from kit.analysis.index import Index
from kit.analysis.waves import full_waves, wave_of
from kit.records import Ints
from kit.spec import Eagle3Arm
from kit.stats import (
    Disclosure,
    OracleRequests,
    Resampling,
    StatsError,
    contiguous_halves,
    oracle_gaps,
    relative_se,
)

__all__ = ["oracles"]

RELEASED = {
    OracleKind.CURVE: (Disclosure.REPORTED, Disclosure.FLAGGED),
    OracleKind.REPLAY: (Disclosure.OPTIONAL, Disclosure.SECONDARY),
}
MIN_WAVES = 16
"""Waves of one concurrency: each of the two folds then fits a policy to eight batches, one bin's worth (method 3.4)."""
UNTRUSTED = 0.05
"""Share of requests without a trustworthy trace from which the others are no sample of the workload (method 1.4)."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """The fixed chains of a run, their cost and what may be used of their requests."""

    index: Index
    accounts: Accounts
    costs: Costs
    chains: dict[int, Eagle3Arm]

    @property
    def depths(self) -> tuple[int, ...]:
        return tuple(sorted(self.chains))


def oracles(index: Index, accounts: Accounts, *, gates: Gates, costs: Costs) -> tuple[Oracle, Oracle]:
    """The curve oracle and the replay oracle."""
    chains: dict[int, Eagle3Arm] = {}
    for arm in index.spec.arms:
        if isinstance(arm, Eagle3Arm) and arm.topk == 1:
            chains.setdefault(arm.num_steps, arm)
    problem = _Problem(index, accounts, costs, chains)
    reading = gates.reading
    return (
        _oracle(problem, OracleKind.CURVE, reading.curve_oracle, reading.functional_blocks),
        _oracle(problem, OracleKind.REPLAY, reading.replay_oracle, False),
    )


def _oracle(problem: _Problem, kind: OracleKind, disclosure: Disclosure, imprecise: bool) -> Oracle:
    reason = _refusal(problem, kind, disclosure, imprecise)
    levels = () if reason else tuple(_levels(problem, kind))
    return Oracle(kind, disclosure, problem.depths, levels, reason)


def _refusal(problem: _Problem, kind: OracleKind, disclosure: Disclosure, imprecise: bool) -> str | None:
    """Why the whole oracle is withheld; None when its levels may be computed."""
    if disclosure not in RELEASED[kind]:
        if imprecise:
            return "the first gate passes, but tokens per round read off the deepest curve may be too far off"
        return "the first gate must pass" if kind is OracleKind.CURVE else "the second gate must pass"
    if len(problem.depths) < 2:
        return "one fixed chain leaves nothing to choose"
    return problem.costs.model_reason


def _levels(problem: _Problem, kind: OracleKind) -> Iterator[OracleLevel]:
    deepest = problem.chains[problem.depths[-1]]
    for concurrency, _ in problem.index.levels(deepest.name):
        try:
            yield _level(problem, kind, concurrency)
        except StatsError as error:
            yield OracleLevel(concurrency, None, str(error))


def _level(problem: _Problem, kind: OracleKind, concurrency: int) -> OracleLevel:
    captures = {K: _Capture.of(problem, K, concurrency) for K in problem.depths}
    deepest = captures[problem.depths[-1]]
    untrusted = max(capture.untrusted for capture in captures.values())
    if untrusted > UNTRUSTED:
        return OracleLevel(concurrency, None, f"{untrusted:.0%} of the requests have no trustworthy trace")
    if problem.costs.model is None:
        return OracleLevel(concurrency, None, problem.costs.model_reason)
    used = deepest.usable
    if kind is OracleKind.REPLAY:
        used = used & np.all([capture.answers[problem.index.requests.prompt] >= 0 for capture in captures.values()], 0)
    chosen = full_waves(deepest.wave, used, concurrency)
    waves = len(chosen) // concurrency
    if waves < MIN_WAVES:
        return OracleLevel(concurrency, None, f"{waves} whole waves with a trustworthy trace; {MIN_WAVES} are needed")
    rule = problem.index.spec.gate
    gaps = oracle_gaps(
        _requests(problem, captures, chosen, replay=kind is OracleKind.REPLAY),
        Ks=problem.depths,
        cost=fitted(problem.costs.model.cells),
        resampling=Resampling(seed=rule.seed, draws=rule.bootstrap_draws),
        time_se=_time_errors(problem, concurrency),
    )
    return OracleLevel(concurrency, gaps, None)


@dataclass(frozen=True, slots=True, eq=False)
class _Capture:
    """One depth at one concurrency. `answers[p]` is the request of prompt p, -1 for none; waves are over the table."""

    depth: int
    wave: Ints
    usable: np.ndarray[tuple[int], np.dtype[np.bool_]]
    answers: Ints
    untrusted: float

    @classmethod
    def of(cls, problem: _Problem, depth: int, concurrency: int) -> _Capture:
        index, accounts = problem.index, problem.accounts
        table, arm = index.requests, problem.chains[depth]
        cells = dict(index.levels(arm.name)).get(concurrency, ())
        mine = index.in_cells(cells) & table.ok
        usable = mine & accounts.whole & accounts.trusted
        answers = np.full(len(table.prompts), -1, np.int64)
        chosen = np.flatnonzero(usable)[::-1]
        answers[table.prompt[chosen]] = chosen
        asked = int(mine.sum())
        untrusted = 1 - int(usable.sum()) / asked if asked else 1.0
        return cls(depth, wave_of(index, cells, concurrency), usable, answers, untrusted)


def _requests(problem: _Problem, captures: dict[int, _Capture], chosen: Ints, *, replay: bool) -> OracleRequests:
    """The chosen requests of the deepest capture as batches, with the same requests at every depth for a replay."""
    table, deepest = problem.index.requests, captures[problem.depths[-1]]
    first, second = _halves(problem, chosen, deepest.depth)
    prompts = table.prompt[chosen]
    return OracleRequests(
        batch=np.unique(deepest.wave[chosen], return_inverse=True)[1].astype(np.int64),
        prompt=np.unique(prompts, return_inverse=True)[1].astype(np.int64),
        first=first,
        second=second,
        replayed=tuple(_halves(problem, captures[K].answers[prompts], K) for K in problem.depths) if replay else None,
    )


def _halves(problem: _Problem, requests: Ints, depth: int) -> tuple[Ints, Ints]:
    """Histograms (requests, depth + 1) of both halves of the trusted rounds of `requests` (positions in the table)."""
    distinct, place = np.unique(requests, return_inverse=True)
    owner = np.full(len(problem.index.requests), -1, np.int64)
    owner[distinct] = np.arange(len(distinct))
    rounds = problem.index.rounds.where(problem.accounts.keep & (owner[problem.index.rounds.request] >= 0))
    first, second = contiguous_halves(owner[rounds.request], accepted=rounds.accepted, prompts=len(distinct), K=depth)
    return first[place], second[place]


def _time_errors(problem: _Problem, concurrency: int) -> list[float]:
    """Relative error of each depth's iteration time between launches, 0 where too few launches tell it."""
    errors = {
        row.account.K: relative_se(row.account.iter_ms) or 0.0
        for row in problem.costs.rows
        if row.account is not None and row.concurrency == concurrency and row.arm in _names(problem)
    }
    return [errors.get(K, 0.0) for K in problem.depths]


def _names(problem: _Problem) -> set[str]:
    return {arm.name for arm in problem.chains.values()}
