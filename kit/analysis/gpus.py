"""What the GPUs did while cells were timed: clocks, power, temperature, reasons for slowing down, energy a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

from kit.analysis.index import Index
from kit.records import Cell, GpuSample, Origin, Role
from kit.stats import Estimate, ratio_estimate

__all__ = ["Energy", "Extent", "GpuConditions", "energies", "gpu_conditions"]

METHOD = "geometric mean over launches, t on the log"
MILLI = 1000.0


@dataclass(frozen=True, slots=True)
class Extent:
    """Lowest, median and highest of the samples that told something."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class GpuConditions:
    """One GPU while one cell was timed; None where no sample told. `slowdown` is NVML's bit mask, all samples or-ed.

    `processes` is the largest number of compute processes seen on the GPU.
    """

    cell: int
    launch: int
    arm: str
    concurrency: int
    gpu: int
    samples: int
    sm_mhz: Extent | None
    power_w: Extent | None
    temperature_c: Extent | None
    slowdown: int
    processes: int | None


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules that the visible GPUs took for one output token, idle ends of the passes included."""

    arm: str
    concurrency: int
    joules_per_token: Estimate


def gpu_conditions(index: Index) -> tuple[GpuConditions, ...]:
    """One value a GPU and timed cell, in the order in which they were measured; none where nobody sampled."""
    return tuple(
        _conditions(index, index.cells[cell], gpu, samples)
        for cell, sampled in _sampled(index).items()
        for gpu, samples in sorted(sampled.items())
    )


def energies(index: Index) -> tuple[Energy, ...]:
    """One value an arm and concurrency whose energy counters were read."""
    return tuple(_energies(index))


def _energies(index: Index) -> Iterator[Energy]:
    joules, tokens = {cell: _joules(by_gpu) for cell, by_gpu in _sampled(index).items()}, _tokens(index)
    for arm in index.spec.arms:
        for concurrency, cells in index.levels(arm.name, role=Role.MEASURE):
            known = [cell for cell in cells if joules.get(cell) and tokens[cell]]
            if known:
                used, written = [joules[cell] or 0.0 for cell in known], [tokens[cell] for cell in known]
                estimate = ratio_estimate(used, b=written, level=index.spec.decision.confidence_level)
                reason = None if estimate.interval else f"{len(known)} of the 3 launches that an interval needs"
                yield Energy(arm.name, concurrency, replace(estimate, method=METHOD, reason=reason))


def _sampled(index: Index) -> dict[int, dict[int, list[GpuSample]]]:
    """Samples of timed passes, by cell and GPU; none of a simulated server, which uses no GPU."""
    if index.facts.header.origin is Origin.SIMULATED:
        return {}
    cell_of = {one.repetition: cell for cell, timed in index.timed.items() for one in timed}
    found: dict[int, dict[int, list[GpuSample]]] = {}
    for sample in index.facts.gpu_samples:
        if (cell := cell_of.get(sample.repetition)) is not None:
            found.setdefault(cell, {}).setdefault(sample.gpu, []).append(sample)
    return found


def _tokens(index: Index) -> Counter[int]:
    """Output tokens of successful timed requests, by cell."""
    table, found = index.requests, Counter[int]()
    for cell, tokens in zip(table.cell[table.ok].tolist(), table.completion[table.ok].tolist(), strict=True):
        found[cell] += tokens
    return found


def _joules(by_gpu: Mapping[int, Sequence[GpuSample]]) -> float | None:
    """What all GPUs took between the first and the last sample of each pass; None where one does not tell."""
    used = [_used(samples) for samples in by_gpu.values()]
    known = [joules for joules in used if joules]
    return sum(known) if len(known) == len(used) else None


def _used(samples: Sequence[GpuSample]) -> float:
    read: dict[int, list[int]] = {}
    for sample in samples:
        if sample.energy_mj is not None:
            read.setdefault(sample.repetition, []).append(sample.energy_mj)
    return sum(values[-1] - values[0] for values in read.values()) / MILLI


def _conditions(index: Index, cell: Cell, gpu: int, samples: Sequence[GpuSample]) -> GpuConditions:
    return GpuConditions(
        cell=cell.cell,
        launch=cell.launch,
        arm=index.launches[cell.launch].arm,
        concurrency=cell.concurrency,
        gpu=gpu,
        samples=len(samples),
        sm_mhz=_spread([sample.sm_mhz for sample in samples]),
        power_w=_spread([None if sample.power_mw is None else sample.power_mw / MILLI for sample in samples]),
        temperature_c=_spread([sample.temperature_c for sample in samples]),
        slowdown=reduce(or_, (sample.slowdown or 0 for sample in samples), 0),
        processes=max((sample.processes for sample in samples if sample.processes is not None), default=None),
    )


def _spread(told: Sequence[float | None]) -> Extent | None:
    known = [value for value in told if value is not None]
    return Extent(float(min(known)), float(np.median(known)), float(max(known))) if known else None
