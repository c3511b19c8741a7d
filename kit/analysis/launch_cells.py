"""Cells arranged by block and level, so that arms can be paired: one reading of every cell that has it."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kit.analysis.results import CellResult
from kit.records import Role
from kit.spec import Spec

__all__ = ["LaunchCells", "Matrix", "Reading", "full_run"]

Matrix = npt.NDArray[np.float64]
Reading = Callable[[CellResult], float | None]


@dataclass(frozen=True, slots=True)
class LaunchCells:
    """Cells of a run and which of them may decide."""

    spec: Spec
    cells: tuple[CellResult, ...]
    valid: Set[int]

    def window(self, cell: CellResult) -> float | None:
        """Window throughput of a cell that may decide."""
        return cell.throughput_window.point if cell.cell in self.valid else None

    def levels(self) -> tuple[int, ...]:
        """Concurrencies that were measured, ascending."""
        return tuple(sorted({cell.concurrency for cell in self.cells}))

    def matrix(self, arm: str, role: Role, reading: Reading) -> Matrix:
        """Reading of an arm's cells (blocks, levels): the mean of a block's launches, NaN without one."""
        blocks = sorted({cell.block for cell in self.cells})
        levels = self.levels()
        found: dict[tuple[int, int], list[float]] = {}
        for cell in self.cells:
            value = reading(cell)
            if cell.arm == arm and cell.role is role and value is not None:
                found.setdefault((blocks.index(cell.block), levels.index(cell.concurrency)), []).append(value)
        matrix = np.full((len(blocks), len(levels)), np.nan)
        for at, values in found.items():
            matrix[at] = np.mean(values)
        return matrix


def full_run(cell: CellResult) -> float | None:
    """Throughput of a cell over its whole run, whether or not it may decide."""
    return cell.throughput_full_run.point
