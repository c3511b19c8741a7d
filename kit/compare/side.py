"""One run arranged by block, so that another run of the same spec can be paired with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kit.analysis import CellResult, LaunchIterationTime, LevelResult, launch_iteration_times, spec_of
from kit.checks import CellState
from kit.records import LaunchStatus, Role, RunFacts
from kit.spec import Arm, Spec
from kit.stats import Estimate, ratio_estimate
from kit.units import Seconds
from kit.verdict import Verdict

__all__ = ["ByBlock", "DepthKey", "Measured", "over_launches", "paired"]

MIN_ITERATIONS = 20
"""Iterations of a launch below which their median is not used."""
OVER_LAUNCHES = "t on the log over launches"

ByBlock = Mapping[int, float]
DepthKey = tuple[str, int | None, int]
"""Arm, K in force (None without speculation), batch size."""


@dataclass(frozen=True)
class Measured:
    """Facts of a run and the verdict on them."""

    facts: RunFacts
    verdict: Verdict

    @cached_property
    def spec(self) -> Spec:
        """What the run was asked for."""
        return spec_of(self.facts)

    @cached_property
    def valid(self) -> frozenset[int]:
        """Cells that may decide."""
        return frozenset(one.cell for one in self.verdict.doubts.cells if one.state is CellState.VALID)

    @cached_property
    def cells(self) -> tuple[CellResult, ...]:
        """Cells of the launches that measure."""
        return tuple(cell for cell in self.verdict.speed.cells if cell.role is Role.MEASURE)

    def levels(self) -> tuple[int, ...]:
        """Concurrencies that were measured, ascending."""
        return tuple(sorted({cell.concurrency for cell in self.cells}))

    def level(self, arm: str, concurrency: int) -> LevelResult | None:
        """What the run itself says about an arm at a concurrency."""
        found = (one for one in self.verdict.speed.levels if (one.arm, one.concurrency) == (arm, concurrency))
        return next(found, None)

    def window(self, arm: str, concurrency: int) -> ByBlock:
        """Window throughput of valid cells, tokens per second."""
        return self._by_block(arm, concurrency, lambda cell: self._if_valid(cell, cell.throughput_window.point))

    def tpot(self, arm: str, concurrency: int) -> ByBlock:
        """Median time per output token of every cell that has it, seconds."""
        return self._by_block(arm, concurrency, lambda cell: cell.tpot_s.p50)

    @cached_property
    def times(self) -> Mapping[DepthKey, Mapping[int, tuple[LaunchIterationTime, ...]]]:
        """Iteration times by block, of launches with a valid cell at a concurrency of that batch size."""
        found: dict[DepthKey, dict[int, tuple[LaunchIterationTime, ...]]] = {}
        for arm, block, time in self._usable_times():
            blocks = found.setdefault((arm, time.depth, time.batch_size), {})
            blocks[block] = (*blocks.get(block, ()), time)
        return found

    def seconds(self, key: DepthKey) -> ByBlock:
        """Median iteration time of each block."""
        return {block: _mean([time.median_s for time in times]) for block, times in self.times.get(key, {}).items()}

    def stretch(self, key: DepthKey, reference: Arm) -> ByBlock:
        """Iteration time over that of the arm's baseline at the same batch size."""
        mine, theirs = self.seconds(key), self.seconds((reference.name, None, key[2]))
        return {block: mine[block] / theirs[block] for block in mine if block in theirs}

    def _usable_times(self) -> Iterator[tuple[str, int, LaunchIterationTime]]:
        usable = {(cell.launch, cell.concurrency) for cell in self.cells if cell.cell in self.valid}
        launches = {one.launch: one for one in self.facts.launches if one.status is not LaunchStatus.VOID}
        for time in launch_iteration_times(self.facts):
            launch = launches.get(time.launch)
            if launch and time.n >= MIN_ITERATIONS and (time.launch, time.batch_size) in usable:
                yield launch.arm, launch.block, time

    def _by_block(self, arm: str, concurrency: int, reading: Callable[[CellResult], float | None]) -> ByBlock:
        found: dict[int, list[float]] = {}
        for cell in self.cells:
            if (cell.arm, cell.concurrency) == (arm, concurrency) and (value := reading(cell)) is not None:
                found.setdefault(cell.block, []).append(value)
        return {block: _mean(values) for block, values in found.items()}

    def _if_valid(self, cell: CellResult, value: float | None) -> float | None:
        return value if cell.cell in self.valid else None


def paired(first: ByBlock, second: ByBlock) -> tuple[list[float], list[float]]:
    """Values of the blocks that both have, in order of block."""
    blocks = sorted(first.keys() & second.keys())
    return [first[block] for block in blocks], [second[block] for block in blocks]


def over_launches(seconds: ByBlock, *, level: float) -> Estimate:
    """Geometric mean over launches with its t interval, in the unit that comes in."""
    values = [seconds[block] for block in sorted(seconds)]
    if not values:
        return Estimate.missing("no valid cell has it", method=OVER_LAUNCHES)
    return replace(ratio_estimate(values, b=np.ones(len(values)), level=level), method=OVER_LAUNCHES)


def _mean(values: Sequence[Seconds]) -> float:
    return float(np.mean(values))
