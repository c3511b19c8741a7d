"""How requests of a fixed chain differ: spread, kinds of prompt, and whether a curve belongs to its request (method 7).

A prompt is the unit. Halves of a text need the trace, because a histogram does not say where a round was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kit.analysis.acceptance import PromptHistograms, prompt_histograms
from kit.analysis.accounting import Accounts
from kit.analysis.heterogeneity_results import CurveOwnership, Heterogeneity, RequestSpread
from kit.analysis.index import Index
from kit.analysis.waves import wave_of
from kit.spec import Eagle3Arm
from kit.stats import Estimate, Halves, Resampling, class_ratio, halves, ownership, split_half, spread, spread_within
from kit.stats import Rounds as StatRounds

__all__ = ["heterogeneity"]

ONE_CLASS = "there are no two kinds of prompt that accept differently"
Bools = npt.NDArray[np.bool_]
NO_TRACE = "without a trace it is not known where in the text a round was"
ONE_DEPTH = "no concurrency has traced rounds of two fixed chains"


def heterogeneity(index: Index, accounts: Accounts) -> Heterogeneity:
    """Spread of every fixed chain at every concurrency, and the shallowest chain against the deepest."""
    chains = tuple(_chains(index, accounts))
    found: dict[int, dict[int, Halves]] = {}
    for chain in chains:
        if chain.halves is not None:
            found.setdefault(chain.concurrency, {}).setdefault(chain.depth, chain.halves)
    owned = tuple(_ownerships(index, found))
    return Heterogeneity(tuple(chain.spread() for chain in chains), owned, None if owned else ONE_DEPTH)


def _chains(index: Index, accounts: Accounts) -> Iterator[_Chain]:
    for arm in index.spec.arms:
        if isinstance(arm, Eagle3Arm) and arm.topk == 1:
            for concurrency, cells in index.levels(arm.name):
                yield _Chain(index, accounts, arm.name, arm.num_steps, concurrency, cells)


def _resampling(index: Index) -> Resampling:
    return Resampling(seed=index.spec.gate.seed, draws=index.spec.gate.bootstrap_draws)


@dataclass(frozen=True)
class _Chain:
    """One fixed chain at one concurrency."""

    index: Index
    accounts: Accounts
    arm: str
    depth: int
    concurrency: int
    cells: tuple[int, ...]

    def spread(self) -> RequestSpread:
        """How its requests differ."""
        data, resampling = self.prompts, _resampling(self.index)
        ratio, easiest, hardest = _class_ratio(self.index, data)
        missing = Estimate.missing(NO_TRACE)
        return RequestSpread(
            arm=self.arm,
            concurrency=self.concurrency,
            depth=self.depth,
            prompts=len(data.prompt),
            spread=spread(data.hist, strata=data.strata, resampling=resampling),
            within_wave=self._within_wave(resampling),
            class_ratio=ratio,
            easiest=easiest,
            hardest=hardest,
            split_half=missing if self.halves is None else split_half(self.halves, resampling=resampling),
        )

    @cached_property
    def prompts(self) -> PromptHistograms:
        """Whole histograms, one row a prompt."""
        return prompt_histograms(self.index, self._mine & self.accounts.whole, depth=self.depth)

    @property
    def _mine(self) -> Bools:
        return self.index.in_cells(self.cells)

    def _within_wave(self, resampling: Resampling) -> Estimate:
        table = self.index.requests
        used = np.flatnonzero(self._mine & self.accounts.whole)
        hists = np.zeros((len(used), self.depth + 1), np.int64)
        width = min(self.depth + 1, table.hist.shape[1])
        hists[:, :width] = table.hist[used, :width]
        wave = wave_of(self.index, self.cells, self.concurrency)[used]
        return spread_within(hists, batch=wave, resampling=resampling)

    @cached_property
    def halves(self) -> Halves | None:
        """S_1 of each prompt of the run in either half of its text, from its first trusted request."""
        table, accounts = self.index.requests, self.accounts
        chosen = np.flatnonzero(self._mine & accounts.whole & accounts.trusted)
        request = np.full(len(table.prompts), -1, np.int64)
        request[table.prompt[chosen[::-1]]] = chosen[::-1]
        present = np.flatnonzero(request >= 0)
        owner = np.full(len(table), -1, np.int64)
        owner[request[present]] = present
        rounds = self.index.rounds.where(accounts.keep & (owner[self.index.rounds.request] >= 0))
        if not len(rounds.request):
            return None
        tokens = np.zeros(len(table.prompts), np.int64)
        tokens[present] = table.completion[request[present]]
        ordered = StatRounds.of(owner[rounds.request], active=rounds.depth, accepted=rounds.accepted)
        return halves(ordered, text_tokens=tokens, prompts=len(table.prompts))


def _class_ratio(index: Index, data: PromptHistograms) -> tuple[Estimate, str | None, str | None]:
    """Mean accepted drafts of the easiest kind of prompt over that of the hardest."""
    codes = np.unique(data.strata)
    drafts = np.arange(data.hist.shape[1])
    totals = [data.hist[data.strata == code].sum(axis=0) for code in codes]
    means = [float(h @ drafts) / max(int(h.sum()), 1) for h in totals]
    if len(set(means)) < 2:
        return Estimate.missing(ONE_CLASS, n=len(data.prompt)), None, None
    top, bottom = codes[int(np.argmax(means))], codes[int(np.argmin(means))]
    ratio = class_ratio(data.hist, classes=data.strata, over=top, under=bottom, resampling=_resampling(index))
    return ratio, index.requests.classes[top], index.requests.classes[bottom]


def _ownerships(index: Index, found: dict[int, dict[int, Halves]]) -> Iterator[CurveOwnership]:
    table, resampling = index.requests, _resampling(index)
    strata = np.zeros(len(table.prompts), np.int64)
    strata[table.prompt] = table.prompt_class
    for concurrency, by_depth in sorted(found.items()):
        if len(by_depth) > 1:
            shallow, deep = min(by_depth), max(by_depth)
            owned = ownership(by_depth[shallow], b=by_depth[deep], resampling=resampling, strata=strata)
            yield CurveOwnership(concurrency, shallow, deep, owned.across.n, owned)
