"""What the GPUs did while they were timed: one line an arm and concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import Energy, Extent, GpuConditions
from kit.format import MISSING, count
from kit.metrics import metric
from kit.report.entries import column, defined
from kit.report.escape import code
from kit.report.table import Entry, table

__all__ = ["GpuView", "gpu_view"]


_UNTOLD = "NVML does not tell it of this GPU"


@dataclass(frozen=True, slots=True)
class GpuView:
    """Strings of the section; empty where no GPU was sampled."""

    conditions: str
    energy: str
    energy_table: str


def gpu_view(conditions: Sequence[GpuConditions], energies: Sequence[Energy]) -> GpuView:
    """The section's strings."""
    return GpuView(
        conditions=_conditions(conditions) if conditions else "",
        energy=defined("energy_per_token"),
        energy_table=_energies(energies) if energies else "",
    )


def _conditions(conditions: Sequence[GpuConditions]) -> str:
    """Launches of one arm and concurrency on one line, whatever their role."""
    groups: dict[tuple[str, int, int], list[GpuConditions]] = {}
    for one in conditions:
        groups.setdefault((one.arm, one.concurrency, one.gpu), []).append(one)
    seen = list(dict.fromkeys(one.arm for one in conditions))
    rows = [
        (
            code(arm),
            str(concurrency),
            str(gpu),
            count(sum(one.samples for one in group)),
            _range([one.sm_mhz for one in group]),
            _range([one.power_w for one in group]),
            _range([one.temperature_c for one in group]),
        )
        for (arm, concurrency, gpu), group in sorted(
            groups.items(), key=lambda one: (seen.index(one[0][0]), one[0][1:])
        )
    ]
    header = ("Arm", "Requests at once", "GPU", "Samples", "SM clock, MHz", "Power, W", "Temperature, °C")
    return table(header, rows, align="lrrrrrr")


def _range(spreads: Sequence[Extent | None]) -> Entry:
    """Lowest to highest sample of a group."""
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return Entry(MISSING, _UNTOLD)
    low, high = min(spread.low for spread in known), max(spread.high for spread in known)
    return Entry(f"{low:.0f}" if f"{low:.0f}" == f"{high:.0f}" else f"{low:.0f} to {high:.0f}", None)


def _energies(energies: Sequence[Energy]) -> str:
    known = metric("energy_per_token")
    shown = column([one.joules_per_token for one in energies], unit=known.display)
    rows: list[tuple[str, str, str, Entry]] = [
        (code(one.arm), str(one.concurrency), str(one.joules_per_token.n), entry)
        for one, entry in zip(energies, shown, strict=True)
    ]
    return table(("Arm", "Requests at once", "Launches", f"{known.label}, mJ"), rows, align="lrrr")
