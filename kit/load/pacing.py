"""When requests are due in an open loop: by a clock, whatever the server does. Pure.

A closed loop waits for the slow answers it measures, and so sends less of the load that makes them slow. Here a stall
delays nothing but answers, and latencies count from the time at which a request was due.
"""

from __future__ import annotations

import numpy as np

from kit.errors import SpecError
from kit.spec import Arrival
from kit.units import Seconds

__all__ = ["constant", "due_times", "poisson"]


def due_times(rule: Arrival, *, requests: int, per_second: float) -> tuple[Seconds, ...]:
    """Due times by the rule of a spec: the same for every arm."""
    if rule.process == "constant":
        return constant(requests, per_second=per_second)
    return poisson(requests, per_second=per_second, seed=rule.seed)


def constant(requests: int, *, per_second: float) -> tuple[Seconds, ...]:
    """Due times from the start of a cell, equally spaced, the first at 0. Raises SpecError for a rate that is none."""
    _require_rate(per_second)
    return tuple((np.arange(requests) / per_second).tolist())


def poisson(requests: int, *, per_second: float, seed: int) -> tuple[Seconds, ...]:
    """Due times of a Poisson process: independent exponential gaps. Raises SpecError for a rate that is none."""
    _require_rate(per_second)
    gaps = np.random.default_rng(seed).exponential(1 / per_second, requests)
    return tuple(np.cumsum(gaps).tolist())


def _require_rate(per_second: float) -> None:
    if not 0 < per_second < float("inf"):
        raise SpecError(f"a rate of {per_second} requests per second cannot be kept; give one above 0")
