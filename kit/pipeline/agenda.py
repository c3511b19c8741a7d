"""What is still to be measured: launches of the plan that no earlier sitting has settled, each with its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kit.errors import SpecError
from kit.plan import Plan, PlannedLaunch
from kit.records import Launch, LaunchStatus, RunHeader

__all__ = ["Appointment", "agenda", "require_same_run"]

# What must not change between two sittings of one run; anything else of the host may.
_SAME_HOST = ("cpu", "cores", "packages")
_SAME_GPU = ("name", "driver_version", "memory.total")


@dataclass(frozen=True, slots=True)
class Appointment:
    """A launch of the plan and the number that it gets in the run file."""

    number: int
    planned: PlannedLaunch


def agenda(plan: Plan, stored: Sequence[Launch]) -> tuple[Appointment, ...]:
    """Launches of `plan` that are not in `stored` yet, in order; one that was interrupted is begun again."""
    settled = {(one.block, one.position) for one in stored if one.status is not LaunchStatus.INTERRUPTED}
    left = (one for one in plan.launches if (one.block, one.position) not in settled)
    first = max((one.launch for one in stored), default=-1) + 1
    return tuple(Appointment(number, planned) for number, planned in enumerate(left, start=first))


def require_same_run(stored: RunHeader, now: RunHeader) -> None:
    """Raises SpecError, with both values, unless `now` would measure the same thing on the same host as `stored`."""
    for what, before, after in (
        ("the registered spec (SHA-256)", stored.spec_hash, now.spec_hash),
        ("the workload (SHA-256)", stored.workload_hash, now.workload_hash),
        ("where the facts come from", stored.origin.value, now.origin.value),
        ("what was declared", list(stored.declarations), list(now.declarations)),
        *((name, stored.host.get(name), now.host.get(name)) for name in _SAME_HOST),
        ("the GPUs", _gpus(stored.host), _gpus(now.host)),
    ):
        if before != after:
            raise SpecError(f"--resume: {what} was {before} and is {after}; measure into another --out")


def _gpus(host: Any) -> list[dict[str, Any]]:
    return [{name: gpu.get(name) for name in _SAME_GPU} for gpu in host.get("gpus") or ()]
