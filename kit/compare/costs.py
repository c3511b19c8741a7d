"""Where iterations spend their time on either side: by K and batch size, and the tax of speculating at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kit.compare.results import DepthTime, Tax
from kit.compare.side import DepthKey, Measured, over_launches, paired
from kit.spec import Eagle3Arm
from kit.stats import Estimate, SpeculationTax, mean_over_blocks, ratio_estimate, speculation_tax
from kit.units import MS_PER_S

__all__ = ["depth_times", "taxes"]

DIFFERENCE = "t on the difference, paired over blocks of launches"
LINE = "t over blocks of launches, a line over K in each"
_NOT_POSITIVE = "not above 0 in every block, so there is no ratio"

Line = SpeculationTax


def depth_times(first: Measured, second: Measured) -> tuple[DepthTime, ...]:
    """A row for each arm, K and batch size that was measured; batch sizes are the measured concurrencies."""
    order = {arm.name: at for at, arm in enumerate(first.spec.arms)}
    keys = {*first.times, *second.times}
    return tuple(
        _depth_time(first, second, key)
        for key in sorted(keys, key=lambda key: (order[key[0]], -1 if key[1] is None else key[1], key[2]))
    )


def _depth_time(first: Measured, second: Measured, key: DepthKey) -> DepthTime:
    level = first.spec.decision.confidence_level
    under, over = paired(first.seconds(key), second.seconds(key))
    counted = [time.n for side in (first, second) for times in side.times.get(key, {}).values() for time in times]
    arm, depth, batch = key
    return DepthTime(
        arm=arm,
        depth=depth,
        batch_size=batch,
        iterations=sum(counted),
        first_ms=_ms(first, key, level),
        second_ms=_ms(second, key, level),
        ratio=ratio_estimate(over, b=under, level=level),
        first_stretch=_stretch(first, key, level),
        second_stretch=_stretch(second, key, level),
    )


def _ms(side: Measured, key: DepthKey, level: float) -> Estimate:
    return over_launches(side.seconds(key), level=level).mapped(lambda seconds: seconds * MS_PER_S)


def _stretch(side: Measured, key: DepthKey, level: float) -> Estimate | None:
    reference = side.spec.reference(side.spec.arm(key[0]))
    return None if reference is None else over_launches(side.stretch(key, reference), level=level)


def taxes(first: Measured, second: Measured) -> tuple[Tax, ...]:
    """One row a batch size at which both runs have two chains and their baseline in a block."""
    sizes = sorted({key[2] for key in (*first.times, *second.times)})
    return tuple(row for size in sizes if (row := _tax(first, second, size)) is not None)


def _tax(first: Measured, second: Measured, batch: int) -> Tax | None:
    sides = [_Chains.of(side, batch) for side in (first, second)]
    blocks = sorted(sides[0].depths.keys() & sides[1].depths.keys())
    depths = _shared_depths([sides[0].depths[block] & sides[1].depths[block] for block in blocks])
    lines = [(sides[0].line(block, depths), sides[1].line(block, depths)) for block in blocks]
    both = [(under, over) for under, over in lines if under is not None and over is not None]
    return _row(batch, depths, both, first.spec.decision.confidence_level) if both else None


def _row(batch: int, depths: tuple[int, ...], pairs: Sequence[tuple[Line, Line]], level: float) -> Tax:
    before, after = ([pair[at].tax_ms for pair in pairs] for at in (0, 1))
    slope_before, slope_after = ([pair[at].per_depth_ms for pair in pairs] for at in (0, 1))
    differences = [over - under for under, over in zip(before, after, strict=True)]
    return Tax(
        batch_size=batch,
        depths=depths,
        first_ms=mean_over_blocks(before, method=LINE, level=level),
        second_ms=mean_over_blocks(after, method=LINE, level=level),
        difference_ms=mean_over_blocks(differences, method=DIFFERENCE, level=level),
        ratio=_ratio(before, after, level),
        first_per_draft_ms=mean_over_blocks(slope_before, method=LINE, level=level),
        second_per_draft_ms=mean_over_blocks(slope_after, method=LINE, level=level),
        per_draft_ratio=_ratio(slope_before, slope_after, level),
    )


def _ratio(under: Sequence[float], over: Sequence[float], level: float) -> Estimate:
    if min(*under, *over) <= 0:
        return Estimate.missing(_NOT_POSITIVE, n=len(under))
    return ratio_estimate(over, b=under, level=level)


@dataclass(frozen=True, slots=True)
class _Chains:
    """Times of the chains of one run at one batch size, in ms: `times[block][K]`, 0 for the baseline."""

    times: Mapping[int, Mapping[int, float]]
    depths: Mapping[int, frozenset[int]]

    @classmethod
    def of(cls, side: Measured, batch: int) -> _Chains:
        """Every block that has the baseline; trees and adaptive arms are no chains."""
        found: dict[int, dict[int, float]] = {}
        for depth, block, seconds in _chain_times(side, batch):
            found.setdefault(block, {})[depth] = seconds * MS_PER_S
        based = {block: times for block, times in found.items() if 0 in times}
        return cls(based, {block: frozenset(times) - {0} for block, times in based.items()})

    def line(self, block: int, depths: tuple[int, ...]) -> Line | None:
        """The line through one block's times at `depths`; None where the block lacks one of them."""
        times = self.times[block]
        if len(depths) < 2 or not times.keys() >= set(depths):
            return None
        return speculation_tax(depths, iter_ms=[times[depth] for depth in depths], iter_ms_0=times[0])


def _chain_times(side: Measured, batch: int) -> Iterator[tuple[int, int, float]]:
    """K (0 for the baseline), block and seconds; every chain must have the one baseline that is given."""
    baselines: dict[str, None] = {}
    for arm in side.spec.arms:
        reference = side.spec.reference(arm)
        if isinstance(arm, Eagle3Arm) and arm.topk == 1 and arm.num_steps and reference is not None:
            baselines.setdefault(reference.name)
            if reference.name == next(iter(baselines)):
                for block, seconds in side.seconds((arm.name, arm.num_steps, batch)).items():
                    yield arm.num_steps, block, seconds
    for name in list(baselines)[:1]:
        for block, seconds in side.seconds((name, None, batch)).items():
            yield 0, block, seconds


def _shared_depths(blocks: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Two depths or more that most blocks have: depths launched once enter only where nothing else gives a line."""
    counts = Counter(depth for block in blocks for depth in block)
    for least in sorted(set(counts.values()), reverse=True):
        depths = tuple(sorted(depth for depth, count in counts.items() if count >= least))
        if len(depths) >= 2:
            return depths
    return ()
