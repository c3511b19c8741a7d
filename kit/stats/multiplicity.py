"""Many claims at once: Holm's step-down adjustment (Holm 1979), valid under any dependence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kit.stats.errors import StatsError

__all__ = ["holm"]


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values: the running maximum of (m - rank) p over ascending p, capped at 1."""
    values = np.asarray(p, float)
    if not ((values >= 0) & (values <= 1)).all():
        raise StatsError(f"p-values {values.tolist()} are not all between 0 and 1; an unknown one is 1")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.tolist()
