"""What the iteration trace costs: the same prompts with it and without it, in turns, on one server.

Neighbouring passes are a pair; their order is mirrored from pair to pair, so that a linear drift cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kit.analysis.cells import full_run_throughput
from kit.analysis.index import Index
from kit.analysis.results import TraceCost
from kit.records import Cell, Phase, Repetition, RequestRecord
from kit.stats import Estimate, ratio_estimate

__all__ = ["trace_costs"]

METHOD = "t on the log ratio, paired over neighbouring passes of one launch"
_SIDES = (Phase.TRACED, Phase.UNTRACED)


def trace_costs(index: Index) -> tuple[TraceCost, ...]:
    """One value for each cell whose passes were made with and without the trace."""
    return tuple(
        TraceCost(index.launches[cell.launch].arm, cell.launch, cell.concurrency, _ratio(index, passes))
        for cell in index.facts.cells
        if (passes := _passes(index, cell))
    )


def _passes(index: Index, cell: Cell) -> list[Repetition]:
    return [rep for rep in index.facts.repetitions if rep.cell == cell.cell and rep.phase in _SIDES]


def _ratio(index: Index, passes: Sequence[Repetition]) -> Estimate:
    pairs = [
        found for pair in zip(passes[::2], passes[1::2], strict=False) if (found := dict(_throughputs(index, pair)))
    ]
    known = [pair for pair in pairs if len(pair) == len(_SIDES)]
    traced, untraced = ([pair[side] for pair in known] for side in _SIDES)
    estimate = ratio_estimate(traced, b=untraced, level=index.spec.decision.confidence_level)
    reason = None if estimate.interval else f"{len(known)} of the 3 pairs of passes that an interval needs"
    return replace(estimate, method=METHOD, reason=reason)


def _throughputs(index: Index, pair: Sequence[Repetition]) -> Iterator[tuple[Phase, float]]:
    for repetition in pair:
        requests: list[RequestRecord] = [one for one in index.facts.requests if one.repetition == repetition.repetition]
        if requests and (found := full_run_throughput(repetition, requests).point) is not None:
            yield repetition.phase, found
