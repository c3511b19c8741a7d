"""Waves: the C requests of one cell that were sent one after the other, which is what the oracle calls a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kit.analysis.index import Index
from kit.records import Ints

__all__ = ["full_waves", "wave_of"]


def wave_of(index: Index, cells: Sequence[int], concurrency: int) -> Ints:
    """Number of the wave of every request of the table, from 0 over all of `cells`; -1 outside them."""
    table = index.requests
    order = np.array([record.index for record in table.records], np.int64)
    wave = np.full(len(table), -1, np.int64)
    first = 0
    for cell in cells:
        mine = np.flatnonzero(table.cell == cell)
        wave[mine] = first + order[mine] // concurrency
        first = int(wave.max(initial=-1)) + 1
    return wave


def full_waves(wave: Ints, usable: npt.NDArray[np.bool_], concurrency: int) -> Ints:
    """Requests (positions in the table) of the waves all of whose C requests are usable, wave by wave."""
    chosen = np.flatnonzero(usable & (wave >= 0))
    sizes = np.bincount(wave[chosen], minlength=1)
    kept = chosen[sizes[wave[chosen]] == concurrency]
    return np.asarray(kept[np.argsort(wave[kept], kind="stable")], np.int64)
