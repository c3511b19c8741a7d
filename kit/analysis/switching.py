"""What switching between arms with the load could win, and how much of it an adaptive arm realised.

The best arm of a level is chosen after seeing, which favours it; the interval does not know that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kit.analysis.results import AdaptiveShare, Comparison, LoadSwitch, Speed
from kit.spec import AdaptiveArm, Spec
from kit.stats import Estimate, ratio_estimate

__all__ = ["load_switches"]

NO_GAIN = "no arm is shown to be faster than the baseline here, so there is nothing to realise"
TWO_LOGS = "a ratio of two logarithms; the interval of adaptive / best says how sure it is"


def load_switches(spec: Spec, speed: Speed) -> tuple[LoadSwitch, ...]:
    """The best fixed arm of each concurrency and baseline, and every adaptive arm against it."""
    adaptive = {arm.name for arm in spec.arms if isinstance(arm, AdaptiveArm)}
    levels = sorted({one.concurrency for one in speed.comparisons})
    baselines = dict.fromkeys(one.baseline for one in speed.comparisons)
    return tuple(
        switch
        for baseline in baselines
        for level in levels
        for switch in _at(
            spec, [c for c in speed.comparisons if (c.baseline, c.concurrency) == (baseline, level)], adaptive
        )
    )


def _at(spec: Spec, here: Sequence[Comparison], adaptive: set[str]) -> Iterator[LoadSwitch]:
    known = [one for one in here if one.ratio.point is not None]
    fixed = [one for one in known if one.arm not in adaptive]
    if not fixed:
        return
    best = max(fixed, key=lambda one: one.ratio.point or 0.0)
    level = spec.decision.confidence_level
    yield LoadSwitch(
        baseline=best.baseline,
        concurrency=best.concurrency,
        best=best.arm if (best.ratio.point or 0.0) > 1 else None,
        ratio=best.ratio,
        adaptive=tuple(_share(one, best, level) for one in known if one.arm in adaptive),
    )


def _share(one: Comparison, best: Comparison, level: float) -> AdaptiveShare:
    """The adaptive arm against the best fixed one, in the blocks that have both."""
    mine, theirs = ({block.block: block.arm_tok_s for block in each.blocks} for each in (one, best))
    blocks = sorted(mine.keys() & theirs.keys())
    against = ratio_estimate([mine[b] for b in blocks], b=[theirs[b] for b in blocks], level=level)
    return AdaptiveShare(one.arm, against, _realised(one.ratio, best.ratio))


def _realised(adaptive: Estimate, best: Estimate) -> Estimate:
    """Share of the best arm's gain, on the log scale; only where that gain is shown to be one."""
    if adaptive.point is None or best.point is None or best.interval is None or best.interval.lo <= 1:
        return Estimate.missing(NO_GAIN)
    share = math.log(adaptive.point) / math.log(best.point)
    return Estimate.bare(share, n=min(adaptive.n, best.n), method="ratio of log ratios", reason=TWO_LOGS)
