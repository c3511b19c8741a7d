"""What an adaptive controller did, iteration by iteration, from the trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kit.analysis.acceptance_results import AdaptiveUse, DepthShare
from kit.analysis.index import Index
from kit.records import Ints
from kit.spec import AdaptiveArm

__all__ = ["adaptive_use"]


def adaptive_use(index: Index) -> tuple[AdaptiveUse, ...]:
    """What the controller chose: per launch as a whole, then per concurrency from the rounds of timed requests."""
    uses: list[AdaptiveUse] = []
    for launch in index.facts.launches:
        if isinstance(index.arm_of(launch.launch), AdaptiveArm):
            everything = np.flatnonzero(index.iteration_launch == launch.launch)
            uses += _use(index, launch.arm, launch.launch, None, everything)
            for cell in index.facts.cells:
                if cell.launch == launch.launch:
                    mine = index.rounds.where(index.in_cells((cell.cell,))[index.rounds.request])
                    uses += _use(index, launch.arm, launch.launch, cell.concurrency, np.unique(mine.iteration))
    return tuple(uses)


def _use(index: Index, arm: str, launch: int, concurrency: int | None, iterations: Ints) -> Iterator[AdaptiveUse]:
    """The use of one stretch of iterations, given by their positions in the trace; nothing when there are none."""
    if not len(iterations):
        return
    depth = index.iteration_depth[iterations]
    rounds = np.bincount(index.facts.trace.rounds.iteration, minlength=len(index.iteration_depth))[iterations]
    depths, code = np.unique(depth, return_inverse=True)
    counts, weighted = np.bincount(code), np.bincount(code, rounds).astype(np.int64)
    yield AdaptiveUse(
        arm=arm,
        launch=launch,
        concurrency=concurrency,
        iterations=len(iterations),
        switches=int((np.diff(depth) != 0).sum()),
        depths=tuple(
            DepthShare(k, n, n / len(iterations), m, m / max(int(rounds.sum()), 1))
            for k, n, m in zip(depths.tolist(), counts.tolist(), weighted.tolist(), strict=True)
        ),
    )
