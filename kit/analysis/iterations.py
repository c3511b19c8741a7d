"""How long an iteration takes at each draft length and batch size, from the server's own clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kit.analysis.acceptance_results import IterationTime, LaunchIterationTime
from kit.analysis.index import Index
from kit.records import RunFacts
from kit.units import NS_PER_S, Seconds

__all__ = ["iteration_times", "launch_iteration_times"]


def iteration_times(index: Index) -> tuple[IterationTime, ...]:
    """Medians per arm, draft length and batch size, over every pair of consecutive iterations of the arm's launches.

    The time between two results belongs to the later one. Pauses for prefill and idle gaps are in it, which is why
    the median is taken; warm-up is in it too.
    """
    launches = index.facts.launches
    return tuple(
        IterationTime(arm.name, *median)
        for arm in index.spec.arms
        for median in _medians(index, [launch.launch for launch in launches if launch.arm == arm.name])
    )


def launch_iteration_times(facts: RunFacts) -> tuple[LaunchIterationTime, ...]:
    """The same medians within each launch."""
    index = Index(facts)
    return tuple(
        LaunchIterationTime(launch.launch, *median)
        for launch in facts.launches
        for median in _medians(index, [launch.launch])
    )


def _medians(index: Index, launches: Sequence[int]) -> Iterator[tuple[int | None, int, int, Seconds]]:
    """Draft length, batch size, count and median of every group of iterations of these launches."""
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
        yield None if depth < 0 else depth, batch, n, median
