"""Every cell: how many requests, how many failed, and how long users waited."""

from __future__ import annotations

from collections.abc import Sequence

from kit.analysis import CellResult, Distribution
from kit.format import MILLISECONDS, MISSING, PLAIN, count
from kit.report.entries import points
from kit.report.escape import code
from kit.report.table import Entry, table

__all__ = ["cell_table"]


def cell_table(cells: Sequence[CellResult]) -> str:
    """One row a cell, in the order of launches and concurrencies; empty without cells."""
    if not cells:
        return ""
    ordered = sorted(cells, key=lambda cell: (cell.launch, cell.concurrency))
    columns: list[Sequence[str | Entry]] = [
        [str(cell.launch) for cell in ordered],
        [code(cell.arm) for cell in ordered],
        [str(cell.concurrency) for cell in ordered],
        _achieved(ordered),
        [_requests(cell) for cell in ordered],
        _waits([cell.ttft_s for cell in ordered]),
        _waits([cell.tpot_s for cell in ordered]),
        _waits([cell.chunk_gap_s for cell in ordered]),
    ]
    header = ("Launch", "Arm", "At once", "Achieved", "Requests", "TTFT, ms", "TPOT, ms", "Chunk gap, ms")
    return table(header, list(zip(*columns, strict=True)), align="rlrrrrrr")


def _achieved(cells: Sequence[CellResult]) -> list[Entry]:
    """Points alone: one cell is one observation, so a reason is due only where there is none at all."""
    estimates = [cell.achieved_concurrency for cell in cells]
    texts = points([estimate.point for estimate in estimates], unit=PLAIN)
    pairs = zip(texts, estimates, strict=True)
    return [Entry(shown, estimate.reason if estimate.point is None else None) for shown, estimate in pairs]


def _requests(cell: CellResult) -> str:
    return f"{count(cell.requests)}, {count(cell.failed)} failed" if cell.failed else count(cell.requests)


def _waits(waits: Sequence[Distribution]) -> list[Entry]:
    """Median and 99th percentile of each cell, e.g. "12.1 / 40.3"."""
    medians = points([wait.p50 for wait in waits], unit=MILLISECONDS)
    slowest = points([wait.p99 for wait in waits], unit=MILLISECONDS)
    return [_wait(wait, *texts) for wait, *texts in zip(waits, medians, slowest, strict=True)]


def _wait(wait: Distribution, median: str, slowest: str) -> Entry:
    if wait.p50 is None:
        return Entry(MISSING, wait.reason)
    return Entry(f"{median} / {slowest}")
