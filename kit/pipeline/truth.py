"""What a simulated world really does, stored with the run so that a report can hold its estimates against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kit.load import Prompts
from kit.spec import AdaptiveArm, BaselineArm, Eagle3Arm, Spec
from kit.standin.engine import Speculation
from kit.standin.text import tokenize
from kit.standin.truth import Job, truth
from kit.standin.world import load_world

__all__ = ["simulated_truth"]

_GRID_POINTS = 8


def simulated_truth(spec: Spec, prompts: Prompts) -> dict[str, Any]:
    """Noise-free throughput (tokens/s) by arm and concurrency, and each arm's crossover (null: none in range).

    The world answers the run's own prompts, all of them at every concurrency. An adaptive arm has no one truth: its
    depth depends on what it served before.
    """
    arms = sorted(
        (arm for arm in spec.arms if not isinstance(arm, AdaptiveArm)), key=lambda arm: not isinstance(arm, BaselineArm)
    )
    found = truth(
        load_world(spec.engine.world or ""),
        arms={arm.name: _speculation(arm) for arm in arms},
        work=[Job(tokenize(p.text), p.max_new_tokens, spec.workload.ignore_eos) for p in prompts.prompts],
        grid=_grid(spec.load.concurrency),
    )
    return {
        "throughput": {arm: {str(c): value for c, value in levels.items()} for arm, levels in found.throughput.items()},
        "crossover": dict(found.crossover),
    }


def _grid(levels: Sequence[int]) -> list[int]:
    """The measured concurrencies and enough between them to place a crossover."""
    low, high = min(levels), max(levels)
    between = np.geomspace(low, high, _GRID_POINTS).round().astype(int).tolist()
    return sorted({*levels, *between})


def _speculation(arm: BaselineArm | Eagle3Arm) -> Speculation | None:
    return Speculation(arm.num_steps, arm.draft_tokens) if isinstance(arm, Eagle3Arm) else None
