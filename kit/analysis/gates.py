"""Both gates on the facts of a run: histograms for v1, aligned trace rounds for v2, blocks pooled (method 2).

Fixed chains only: an adaptive arm has no depth of its own, and a tree's depth is not a position. Everything is indexed
by prompt, the same prompts at every depth of a concurrency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from kit.analysis.acceptance_results import GateMovement, GateResidual, Gates
from kit.analysis.accounting import Accounts
from kit.analysis.index import Index, divergence
from kit.records import Ints
from kit.spec import Eagle3Arm
from kit.stats import (
    Aligned,
    AlignedPair,
    AlignmentGate,
    CurveGate,
    Resampling,
    align,
    alignment_gate,
    conversion_residuals,
    curve_gate,
    min_prompts_zero_discordance,
    movement,
    read_gates,
)
from kit.stats import Rounds as StatRounds

__all__ = ["gates"]

CONTROL = "the same K at two concurrencies, on the prompts they share"


@dataclass(frozen=True, slots=True, eq=False)
class _Capture:
    """One depth at one concurrency: `request[p]` is the request of prompt p, -1 for none; `hist` is per prompt."""

    concurrency: int
    depth: int
    request: Ints
    hist: Ints
    rounds: StatRounds | None


def gates(index: Index, accounts: Accounts) -> Gates:
    """Gate v1, gate v2 and what they allow together, by the margins of the spec."""
    rule = index.spec.gate
    captures = tuple(_captures(index, accounts))
    strata = _strata(index)
    resampling = Resampling(seed=rule.seed, draws=rule.bootstrap_draws)
    hists = _shared_prompts(captures)
    used = np.zeros(len(strata), bool)
    for by_depth in hists.values():
        used |= next(iter(by_depth.values())).any(axis=1)
    compact = {c: {k: h[used] for k, h in by_depth.items()} for c, by_depth in hists.items()}
    v1 = curve_gate(compact, resampling=resampling, strata=strata[used], delta=rule.delta_1, alpha=rule.alpha)
    pairs = list(_pairs(index, captures))
    controls = list(_controls(index, captures))
    v2 = alignment_gate(
        [pair for pair, _ in pairs], controls=controls, strata=strata, delta=rule.delta_2, alpha=rule.alpha
    )
    within = bool(v1.functional) and all(error.within(rule.functional_limit) for error in v1.functional)
    return Gates(
        v1=v1,
        v2=v2,
        reading=read_gates(v1.word, v2=v2.word, functional_within=within),
        margin_1=rule.delta_1,
        margin_2=rule.delta_2,
        legacy_tolerance=rule.legacy_tolerance,
        naive_passes=_naive(v1, rule.legacy_tolerance),
        functional_limit=rule.functional_limit,
        functional_within=within,
        prompts_needed=_prompts_needed(v2, rule.delta_2, rule.alpha),
        control=CONTROL if controls else "none",
        movements=tuple(move for _, move in pairs),
        residuals=tuple(_residuals(compact, strata[used], resampling)),
    )


def _strata(index: Index) -> Ints:
    """Workload class of every prompt."""
    strata = np.zeros(len(index.requests.prompts), np.int64)
    strata[index.requests.prompt] = index.requests.prompt_class
    return strata


def _captures(index: Index, accounts: Accounts) -> Iterator[_Capture]:
    """One capture per depth and concurrency, from the first arm that has this depth."""
    seen: set[tuple[int, int]] = set()
    allowed = index.spec.gate.concurrency
    for arm in index.spec.arms:
        if not isinstance(arm, Eagle3Arm) or arm.topk > 1 or arm.num_steps < 1:
            continue
        for concurrency, cells in index.levels(arm.name):
            key = (concurrency, arm.num_steps)
            if key not in seen and (allowed is None or concurrency in allowed):
                seen.add(key)
                yield _capture(index, accounts, cells, *key)


def _capture(index: Index, accounts: Accounts, cells: tuple[int, ...], concurrency: int, depth: int) -> _Capture:
    table = index.requests
    prompts = len(table.prompts)
    chosen = np.flatnonzero(index.in_cells(cells) & accounts.whole)
    request = np.full(prompts, -1, np.int64)
    request[table.prompt[chosen[::-1]]] = chosen[::-1]  # a prompt that came twice counts once: its first time
    present = request >= 0
    width = min(depth + 1, table.hist.shape[1])
    hist = np.zeros((prompts, depth + 1), np.int64)
    hist[present, :width] = table.hist[request[present], :width]
    return _Capture(concurrency, depth, request, hist, _rounds(index, accounts, request, prompts))


def _rounds(index: Index, accounts: Accounts, request: Ints, prompts: int) -> StatRounds | None:
    """Trusted rounds of a capture's requests, owned by prompt; None without a trace."""
    owner = np.full(len(index.requests), -1, np.int64)
    owner[request[request >= 0]] = np.flatnonzero(request >= 0)
    rounds = index.rounds
    keep = accounts.keep & (owner[rounds.request] >= 0)
    if not keep.any():
        return None
    return StatRounds.of(owner[rounds.request[keep]], active=rounds.depth[keep], accepted=rounds.accepted[keep])


def _shared_prompts(captures: tuple[_Capture, ...]) -> dict[int, dict[int, Ints]]:
    """Histograms by concurrency and depth, on the prompts that every depth of the concurrency has."""
    found: dict[int, dict[int, Ints]] = {}
    for capture in captures:
        found.setdefault(capture.concurrency, {})[capture.depth] = capture.hist
    for concurrency, by_depth in found.items():
        shared = np.all([hist.any(axis=1) for hist in by_depth.values()], axis=0)
        found[concurrency] = {depth: hist * shared[:, None] for depth, hist in by_depth.items()}
    return found


def _pairs(index: Index, captures: tuple[_Capture, ...]) -> Iterator[tuple[AlignedPair, GateMovement]]:
    """Every pair of depths at one concurrency that has a trace on both sides, shallower first."""
    strata = _strata(index)
    for one, other in combinations(sorted(captures, key=lambda c: (c.concurrency, c.depth)), 2):
        if one.concurrency != other.concurrency or one.rounds is None or other.rounds is None:
            continue
        aligned = _aligned(index, one, other)
        moved = movement(aligned, hists_a=one.hist, hists_b=other.hist, strata=strata)
        yield (
            AlignedPair(one.concurrency, one.depth, other.depth, aligned),
            GateMovement(one.concurrency, one.depth, other.depth, moved),
        )


def _controls(index: Index, captures: tuple[_Capture, ...]) -> Iterator[AlignedPair]:
    """Each depth against itself at the next concurrency: what differs there is numerical noise."""
    for one, other in pairwise(sorted(captures, key=lambda c: (c.depth, c.concurrency))):
        if one.depth == other.depth and one.rounds is not None and other.rounds is not None:
            aligned = _aligned(index, one, other)
            if len(aligned.prompt):
                yield AlignedPair(other.concurrency, one.depth, one.depth, aligned)


def _aligned(index: Index, one: _Capture, other: _Capture) -> Aligned:
    """Sites of the prompts that both captures have, up to the first token in which their outputs differ."""
    records = index.requests.records
    prompts = len(one.request)
    parting = np.full(prompts, -1, np.int64)
    both = np.flatnonzero((one.request >= 0) & (other.request >= 0))
    for prompt in both.tolist():
        at = divergence(records[one.request[prompt]], records[other.request[prompt]])
        parting[prompt] = -1 if at is None else at
    one_rounds, other_rounds = _only(one.rounds, both), _only(other.rounds, both)
    return align(one_rounds, b=other_rounds, prompts=prompts, divergence=parting)


def _only(rounds: StatRounds | None, prompts: Ints) -> StatRounds:
    if rounds is None:
        return StatRounds.of([], active=0, accepted=[])
    keep = np.isin(rounds.prompt, prompts)
    return StatRounds(rounds.prompt[keep], rounds.active[keep], rounds.accepted[keep])


def _naive(v1: CurveGate, tolerance: float) -> bool | None:
    """The legacy rule, which has no error rate: no difference beyond the tolerance."""
    if not v1.cells:
        return None
    return max(abs(cell.difference.point or 0.0) for cell in v1.cells) <= tolerance


def _prompts_needed(v2: AlignmentGate, delta: float, alpha: float) -> int | None:
    """Prompts for a bound of `delta`, when all that is open is exactly concordant and interpretable (method 2.3)."""
    still_open = [cell for cell in v2.cells if not (cell.inside and cell.interpretable)]
    concordant = all(cell.rule == "zero_discordance" and cell.interpretable for cell in still_open)
    return min_prompts_zero_discordance(delta, alpha=alpha) if still_open and concordant else None


def _residuals(hists: Mapping[int, Mapping[int, Ints]], strata: Ints, resampling: Resampling) -> Iterator[GateResidual]:
    for concurrency, by_depth in hists.items():
        mine = next(iter(by_depth.values())).any(axis=1)
        hists_here = {depth: hist[mine] for depth, hist in by_depth.items()}
        for residual in conversion_residuals(hists_here, resampling=resampling, strata=strata[mine]):
            yield GateResidual(concurrency, residual)
