"""Acceptance of every speculating arm at every concurrency (method 1).

A prompt is the cluster: its requests are added up before anything is estimated. A fixed K needs histograms alone; an
adaptive arm is only bounded, because its histogram mixes rounds that never proposed the deeper positions: narrowly with
the trace, widely without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kit.analysis.acceptance_results import Acceptance, ClassAcceptance
from kit.analysis.accounting import Accounts
from kit.analysis.index import Index, JoinedRounds, candidates_of, depth_of, topk_of
from kit.records import Ints
from kit.spec import AdaptiveArm, Arm, BaselineArm, Eagle3Arm
from kit.stats import (
    AdaptiveDepth,
    Estimate,
    Resampling,
    SurvivalCurve,
    adaptive_curve,
    detect_convention,
    share_interval,
    survival_curve,
    untraced_curve,
)
from kit.stats import Rounds as StatRounds

__all__ = ["PromptHistograms", "acceptance", "prompt_histograms"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PromptHistograms:
    """Histograms added up per prompt: `hist` (prompts, K+1), `prompt` their codes, `strata` their classes."""

    prompt: Ints
    hist: Ints
    strata: Ints
    requests: int


def prompt_histograms(index: Index, chosen: Bools, *, depth: int) -> PromptHistograms:
    """Histograms of the chosen requests, one row a prompt in ascending code, padded or cut to `depth` + 1 bins."""
    table = index.requests
    at = np.flatnonzero(chosen)
    prompts, first, row = np.unique(table.prompt[at], return_index=True, return_inverse=True)
    width = min(depth + 1, table.hist.shape[1])
    hist = np.zeros((len(prompts), depth + 1), np.int64)
    np.add.at(hist[:, :width], row, table.hist[at, :width])
    return PromptHistograms(prompts, hist, table.prompt_class[at][first], len(at))


def acceptance(index: Index, accounts: Accounts) -> tuple[Acceptance, ...]:
    """One value for each speculating arm and concurrency that was measured, in the order of the spec."""
    return tuple(
        _acceptance(index, accounts, arm, concurrency, cells)
        for arm in index.spec.arms
        if not isinstance(arm, BaselineArm)
        for concurrency, cells in index.levels(arm.name)
    )


def _acceptance(index: Index, accounts: Accounts, arm: Arm, concurrency: int, cells: Sequence[int]) -> Acceptance:
    table, depth, level = index.requests, depth_of(arm), index.spec.decision.confidence_level
    mine = index.in_cells(cells)
    used = mine & accounts.whole
    data = prompt_histograms(index, used, depth=depth)
    curve = survival_curve(data.hist, strata=data.strata, level=level)
    adaptive = isinstance(arm, AdaptiveArm)
    bounds = _bounds(index, accounts, mine, data, arm) if isinstance(arm, AdaptiveArm) else ()
    kept = table.hist[used] @ np.arange(table.hist.shape[1]) / np.maximum(table.verify_rounds[used], 1)
    macro = share_interval(kept, n=np.full(len(kept), depth), strata=table.prompt_class[used], level=level)
    excess = accounts.overshoot[used]
    curves = _curves(curve, bounds, adaptive=adaptive)
    verified = arm.draft_tokens if isinstance(arm, Eagle3Arm) else depth + 1
    return Acceptance(
        arm=arm.name,
        concurrency=concurrency,
        adaptive=adaptive,
        depth=depth,
        topk=topk_of(arm),
        requests=int(used.sum()),
        dropped=int(_broken(index, accounts, mine).sum()),
        dropped_reasons=_dropped(index, accounts, mine),
        rounds=curve.rounds,
        convention=detect_convention(zip(excess.tolist(), [depth] * len(excess), strict=True)),
        survival=curves.survival,
        survival_macro=curves.survival_macro,
        conditional=curves.conditional,
        tokens_per_position=curves.tokens_per_position.mapped(lambda tokens: tokens * (depth + 1) / verified),
        acceptance_length=curve.tokens_per_round,
        acceptance_length_macro=macro.mapped(lambda share: 1 + depth * share),
        bounds=bounds,
        classes=tuple(_classes(index, data, level=level, adaptive=adaptive)),
    )


@dataclass(frozen=True, slots=True)
class _Curves:
    survival: tuple[Estimate, ...]
    survival_macro: tuple[Estimate, ...]
    conditional: tuple[Estimate, ...]
    tokens_per_position: Estimate


def _curves(curve: SurvivalCurve, bounds: Sequence[AdaptiveDepth], *, adaptive: bool) -> _Curves:
    """What may be said: all of a fixed K; of an adaptive arm S_1, where its bounds meet, or nothing."""
    if not adaptive:
        return _Curves(curve.survival, curve.macro, curve.conditional, curve.tokens_per_position)
    known = tuple(one.lower for one in bounds[:1] if one.lower.point == one.upper.point)
    mixed = Estimate.missing("rounds of several K are mixed")
    return _Curves(known, tuple(mixed for _ in known), known, mixed)


def _bounds(
    index: Index, accounts: Accounts, mine: Bools, data: PromptHistograms, arm: AdaptiveArm
) -> tuple[AdaptiveDepth, ...]:
    """Manski bounds and Kaplan-Meier from the trusted rounds of an adaptive arm; wider ones without a trace."""
    table, depth = index.requests, depth_of(arm)
    rounds = _kept(index, accounts, mine)
    if not len(rounds.request):
        candidates = candidates_of(arm, sglang=index.spec.engine.sglang)
        return untraced_curve(data.hist, candidates=candidates, strata=data.strata) if len(data.hist) else ()
    prompts, owner = np.unique(table.prompt[rounds.request], return_inverse=True)
    strata = np.zeros(len(prompts), np.int64)
    strata[owner] = table.prompt_class[rounds.request]
    return adaptive_curve(
        StatRounds.of(owner, active=rounds.depth, accepted=rounds.accepted),
        prompts=len(prompts),
        Kmax=depth,
        resampling=Resampling(seed=index.spec.gate.seed, draws=index.spec.gate.bootstrap_draws),
        strata=strata,
    )


def _kept(index: Index, accounts: Accounts, mine: Bools) -> JoinedRounds:
    """Trusted rounds of the chosen requests."""
    rounds = index.rounds
    keep = accounts.keep & mine[rounds.request]
    return rounds.where(keep)


def _broken(index: Index, accounts: Accounts, mine: Bools) -> Bools:
    """Chosen answers that cannot be used; one that ended in prefill owes no histogram."""
    table = index.requests
    return mine & table.ok & ~accounts.whole & (table.has_hist | (table.completion > 1))


def _dropped(index: Index, accounts: Accounts, mine: Bools) -> tuple[str, ...]:
    table = index.requests
    bad = _broken(index, accounts, mine)
    counted = bad & table.has_hist
    rounds = table.hist.sum(axis=1) == table.verify_rounds
    drafts = (table.correct_drafts < 0) | (table.hist @ np.arange(table.hist.shape[1]) == table.correct_drafts)
    reasons = {
        "no histogram": bad & ~table.has_hist,
        "histogram and verify rounds disagree": counted & ~rounds,
        "histogram and accepted drafts disagree": counted & rounds & ~drafts,
        "counts and output tokens disagree": counted & rounds & drafts,
    }
    return tuple(f"{reason}: {int(which.sum())}" for reason, which in reasons.items() if which.any())


def _classes(index: Index, data: PromptHistograms, *, level: float, adaptive: bool) -> Iterator[ClassAcceptance]:
    """Acceptance length and S_1 of each workload class, in the order of their names."""
    rounds, depth = data.hist.sum(axis=1), data.hist.shape[1] - 1
    accepted = data.hist @ np.arange(depth + 1)
    for code in np.unique(data.strata):
        mine = data.strata == code
        mixed = Estimate.missing("rounds of several K are mixed")
        yield ClassAcceptance(
            prompt_class=index.requests.classes[code],
            prompts=int(mine.sum()),
            rounds=int(rounds[mine].sum()),
            acceptance_length=share_interval(accepted[mine], n=depth * rounds[mine], level=level).mapped(
                lambda share: 1 + depth * share
            ),
            survival_1=mixed
            if adaptive
            else share_interval(rounds[mine] - data.hist[mine, 0], n=rounds[mine], level=level),
        )
