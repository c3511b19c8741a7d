"""What server and trace say about each cell, counted for the checks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kit.analysis.index import NONE, Index
from kit.analysis.output_results import CellEvidence
from kit.records import Ints

__all__ = ["cell_evidence"]


def cell_evidence(index: Index) -> tuple[CellEvidence, ...]:
    """One value for each cell that has timed requests."""
    round_cell = index.requests.cell[index.rounds.request]
    drafted = np.bincount(round_cell[index.rounds.depth > 0], minlength=max(index.cells, default=0) + 1)
    return tuple(
        _of_cell(
            index,
            cell.cell,
            index.requests.cell == cell.cell,
            np.unique(index.rounds.iteration[round_cell == cell.cell]),
            int(drafted[cell.cell]),
        )
        for cell in index.facts.cells
        if (index.requests.cell == cell.cell).any()
    )


def _of_cell(index: Index, cell: int, mine: npt.NDArray[np.bool_], iterations: Ints, drafted: int) -> CellEvidence:
    table, trace = index.requests, index.facts.trace.iterations
    used = mine & table.ok
    hist = table.hist[used].sum(axis=0)
    return CellEvidence(
        cell=cell,
        cached_tokens=_total(table.cached[used]),
        prompt_tokens=_total(
            np.array([index.requests.records[at].prompt_tokens or NONE for at in np.flatnonzero(used)], np.int64)
        ),
        retractions=_total(table.retractions[used]),
        verify_rounds=int(hist.sum()),
        accepted_drafts=int(hist @ np.arange(len(hist))),
        drafting=int((used & (table.verify_rounds > 0)).sum()),
        continued=int((used & (table.completion > 1)).sum()),
        drafted_rounds=drafted if len(iterations) else None,
        iterations=len(iterations),
        eager_iterations=int((~trace.cuda_graph[iterations]).sum()),
        largest_batch=int(trace.batch_size[iterations].max(initial=0)),
    )


def _total(counts: Ints) -> int | None:
    """Sum of a count; None when it is missing for a request, or there is no request."""
    return int(counts.sum()) if len(counts) and (counts != NONE).all() else None
