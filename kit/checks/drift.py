"""Did the host stay what it was? The closing baseline against those of the blocks."""

from __future__ import annotations

from collections.abc import Iterator

from kit.analysis import CellResult
from kit.checks.evidence import Evidence, about_cell
from kit.checks.results import Code, Doubt, Severity
from kit.records import Role

__all__ = ["drift"]


def drift(evidence: Evidence) -> Iterator[Doubt]:
    """The baseline at the end of the run is outside of all its earlier launches by more than the noise threshold.

    Blocks mirror each other, so a steady drift cancels in a ratio; its size is in the spread of the launches.
    """
    noise = evidence.spec.decision.noise_threshold
    for cell in evidence.analysis.cells:
        speed = cell.throughput_window.point
        earlier = _earlier(evidence, cell) if cell.role is Role.CLOSING and speed is not None else []
        if speed is None or not earlier:
            continue
        low, high = min(earlier), max(earlier)
        if not low * (1 - noise) <= speed <= high * (1 + noise):
            change = 100 * (speed / (sum(earlier) / len(earlier)) - 1)
            message = (
                f"drift: the baseline gave {speed:,.0f} tok/s at the end of the run, {low:,.0f} to {high:,.0f} before "
                f"({change:+.0f} % of their mean)"
            )
            hint = "let the host reach its working temperature and keep it to itself, and interleave more blocks"
            yield about_cell(cell, Code.DRIFT, Severity.DOUBT, message, hint)


def _earlier(evidence: Evidence, closing: CellResult) -> list[float]:
    """Window throughputs of the measuring launches of the same arm and concurrency."""
    return [
        cell.throughput_window.point
        for cell in evidence.analysis.cells
        if (cell.arm, cell.concurrency, cell.role) == (closing.arm, closing.concurrency, Role.MEASURE)
        and cell.throughput_window.point is not None
    ]
