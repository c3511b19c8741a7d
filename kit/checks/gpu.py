"""Checks of the GPUs: did every cell get the same clock, and the GPU for itself?"""

from __future__ import annotations

from collections.abc import Iterator

from kit.analysis import CellResult, GpuConditions
from kit.checks.evidence import Evidence, about_cell
from kit.checks.results import Code, Doubt, Severity
from kit.records import Role

__all__ = ["gpu_clock_differs", "gpu_shared", "gpu_slowed"]

MAX_CLOCK_DIFFERENCE = 0.02

# NVML's reasons for a lower clock (nvml.h, nvmlClocksEventReason*): what they are called and what they do to a cell.
_FAULTS = {0x08: "hardware slowdown", 0x40: "hardware thermal slowdown", 0x80: "external power brake"}
_LIMITS = {0x04: "power limit", 0x20: "software thermal slowdown"}


def gpu_slowed(evidence: Evidence) -> Iterator[Doubt]:
    """A GPU that protects itself does not run at its speed; one at its power limit runs as fast as it is allowed to."""
    for cell, one in _conditions(evidence):
        if faults := [name for bit, name in _FAULTS.items() if one.slowdown & bit]:
            message = f"GPU {one.gpu} slowed down while it was timed: {', '.join(faults)}"
            hint = "mend its cooling or power supply, and measure again"
            yield about_cell(cell, Code.GPU_SLOWED, Severity.INVALID, message, hint)
        elif limits := [name for bit, name in _LIMITS.items() if one.slowdown & bit]:
            message = f"GPU {one.gpu} was held back while it was timed: {', '.join(limits)}"
            hint = "compare clocks under What ran; the numbers are those of this limit"
            yield about_cell(cell, Code.GPU_SLOWED, Severity.DOUBT, message, hint)


def gpu_shared(evidence: Evidence) -> Iterator[Doubt]:
    """The server has one compute process on each GPU; any other took part of it."""
    for cell, one in _conditions(evidence):
        if one.processes is not None and one.processes > 1:
            message = f"{one.processes} compute processes were on GPU {one.gpu} while it was timed; the server has one"
            hint = "end the other users of the GPU (nvidia-smi lists them), or give the server one of its own"
            yield about_cell(cell, Code.GPU_SHARED, Severity.INVALID, message, hint)


def gpu_clock_differs(evidence: Evidence) -> Iterator[Doubt]:
    """A ratio of two launches at different clocks is partly a ratio of clocks."""
    reference = {
        (cell.block, cell.concurrency, cell.arm, one.gpu): one.sm_mhz.median
        for cell, one in _conditions(evidence)
        if cell.role is Role.MEASURE and one.sm_mhz is not None
    }
    for cell, one in _conditions(evidence):
        baseline = evidence.spec.reference(evidence.spec.arm(cell.arm))
        theirs = baseline and reference.get((cell.block, cell.concurrency, baseline.name, one.gpu))
        if theirs and one.sm_mhz is not None and abs(one.sm_mhz.median / theirs - 1) > MAX_CLOCK_DIFFERENCE:
            message = (
                f"GPU {one.gpu} ran at {one.sm_mhz.median:.0f} MHz, with the baseline of the same block at "
                f"{theirs:.0f} MHz"
            )
            hint = "let the GPU reach its working temperature first, or measure more blocks"
            yield about_cell(cell, Code.GPU_CLOCK_DIFFERS, Severity.DOUBT, message, hint)


def _conditions(evidence: Evidence) -> Iterator[tuple[CellResult, GpuConditions]]:
    """Of measured cells."""
    cells = {cell.cell: cell for cell in evidence.analysis.cells}
    yield from ((cells[one.cell], one) for one in evidence.analysis.gpus if one.cell in cells)
