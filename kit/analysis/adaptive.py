"""What an adaptive controller did, iteration by iteration, from the trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kit.analysis.acceptance_results import AdaptiveUse, DepthPace, DepthShare, DepthSource, DepthSpan, DepthTime
from kit.analysis.index import NONE, Index
from kit.diagnosis import depth_log
from kit.records import Ints, Launch
from kit.spec import AdaptiveArm
from kit.units import NS_PER_S

__all__ = ["adaptive_use", "depth_paces"]

Floats = npt.NDArray[np.float64]
SPANS = 60
"""Stretches into which a launch is cut to show K over time."""


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
    depth, ready = index.iteration_depth[iterations], index.facts.trace.iterations.ready_ns[iterations]
    rounds = np.bincount(index.facts.trace.rounds.iteration, minlength=len(index.iteration_depth))[iterations]
    depths, code = np.unique(depth, return_inverse=True)
    counts, weighted = np.bincount(code), np.bincount(code, rounds).astype(np.int64)
    yield AdaptiveUse(
        arm=arm,
        launch=launch,
        concurrency=concurrency,
        iterations=len(iterations),
        switches=int((np.diff(depth) != 0).sum()),
        seconds=float(ready[-1] - ready[0]) / NS_PER_S,
        depths=tuple(
            DepthShare(k, n, n / len(iterations), m, m / max(int(rounds.sum()), 1))
            for k, n, m in zip(depths.tolist(), counts.tolist(), weighted.tolist(), strict=True)
        ),
    )


def depth_paces(index: Index) -> tuple[DepthPace, ...]:
    """How restless the controller was in each launch of an adaptive arm: from the trace, else from the log."""
    launches = [one for one in index.facts.launches if isinstance(index.arm_of(one.launch), AdaptiveArm)]
    return tuple(pace for launch in launches if (pace := _traced(index, launch) or _logged(launch)) is not None)


def _traced(index: Index, launch: Launch) -> DepthPace | None:
    """An iteration is timed from its launch, or from the result before it if that came later."""
    mine = np.flatnonzero(index.iteration_launch == launch.launch)
    if not len(mine):
        return None
    ready, depth = index.facts.trace.iterations.ready_ns[mine], index.iteration_depth[mine]
    begun = np.maximum(index.facts.trace.iterations.launch_ns[mine], np.append(ready[0], ready[:-1]))
    seconds = np.maximum(ready - begun, 0) / NS_PER_S
    first = np.flatnonzero(np.diff(depth, prepend=NONE - 1))
    pace = _pace(launch, DepthSource.TRACE, depth[first], ready[first] / NS_PER_S, np.add.reduceat(seconds, first))
    return replace(pace, timeline=tuple(_timeline(depth, (ready - ready[0]) / NS_PER_S, seconds)))


def _timeline(depth: Ints, at_s: Floats, seconds: Floats) -> Iterator[DepthSpan]:
    """Equal stretches of a launch; an iteration belongs to the one in which its result came."""
    edges = np.linspace(0.0, at_s[-1], SPANS + 1)
    span = np.clip(np.searchsorted(edges, at_s, side="left") - 1, 0, SPANS - 1)
    depths, code = np.unique(depth, return_inverse=True)
    busy = np.bincount(span * len(depths) + code, seconds, minlength=SPANS * len(depths)).reshape(SPANS, len(depths))
    for begun, ended, row in zip(edges[:-1].tolist(), edges[1:].tolist(), busy, strict=True):
        if row.sum() > 0:
            shares = (row / row.sum()).tolist()
            yield DepthSpan(begun, ended, tuple(map(DepthTime, depths.tolist(), shares)))


def _logged(launch: Launch) -> DepthPace | None:
    found = depth_log(launch.log)
    if found is None:
        return None
    seconds = np.diff([*found.since_s, found.end_s])
    return _pace(launch, DepthSource.LOG, np.array(found.depths), np.array(found.since_s), seconds)


def _pace(launch: Launch, source: DepthSource, depth: Ints, since_s: Floats, seconds: Floats) -> DepthPace:
    """From consecutive stretches of one K each: which, since when, and how long they took."""
    changes = len(depth) - 1
    total = float(seconds.sum())
    return DepthPace(
        arm=launch.arm,
        launch=launch.launch,
        source=source,
        changes=changes,
        undone=int((depth[2:] == depth[:-2]).sum()),
        dwell_s=float(since_s[-1] - since_s[1]) / (changes - 1) if changes > 1 else None,
        times=tuple(
            DepthTime(k, float(seconds[depth == k].sum()) / total) for k in np.unique(depth).tolist() if total > 0
        ),
    )
