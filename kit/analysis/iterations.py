"""How long an iteration takes at each draft length and batch size, from the server's own clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kit.analysis.acceptance_results import IterationTime
from kit.analysis.index import Index
from kit.units import NS_PER_S

__all__ = ["iteration_times"]


def iteration_times(index: Index) -> tuple[IterationTime, ...]:
    """Medians per arm, draft length and batch size, over every pair of consecutive iterations of the arm's launches.

    The time between two results belongs to the later one. Pauses for prefill and idle gaps are in it, which is why
    the median is taken; warm-up is in it too.
    """
    return tuple(time for arm in index.spec.arms for time in _of_arm(index, arm.name))


def _of_arm(index: Index, arm: str) -> Iterator[IterationTime]:
    launches = [launch.launch for launch in index.facts.launches if launch.arm == arm]
    iterations = index.facts.trace.iterations
    at = np.flatnonzero(np.isin(index.iteration_launch, launches))
    if len(at) < 2:
        return
    follows = (np.diff(iterations.launch[at]) == 0) & (np.diff(iterations.number[at]) == 1)
    later = at[1:][follows]
    seconds = np.diff(iterations.ready_ns[at])[follows] / NS_PER_S
    keys = np.stack([index.iteration_depth[later], iterations.batch_size[later]], axis=1)
    groups, code, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    ordered = seconds[np.lexsort((seconds, code.ravel()))]
    first = np.cumsum(counts) - counts
    medians = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    for (depth, batch), n, median in zip(groups.tolist(), counts.tolist(), medians.tolist(), strict=True):
        yield IterationTime(arm, None if depth < 0 else depth, batch, n, median)
