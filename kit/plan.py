"""From a spec to an ordered, seeded list of launches and cells. Pure: the same spec gives the same plan."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kit.errors import SpecError
from kit.records import Phase, Role
from kit.spec import BaselineArm, Spec
from kit.units import Seconds

__all__ = [
    "OFFERED",
    "OUTPUTS",
    "TOGGLED",
    "Plan",
    "PlannedCell",
    "PlannedLaunch",
    "Selection",
    "Timing",
    "estimate_seconds",
    "make_plan",
    "selection_of",
    "timing_of",
]

TOGGLED = (Phase.TRACED, Phase.UNTRACED, Phase.UNTRACED, Phase.TRACED) * 2
"""Passes of a launch that shows what the trace costs: neighbours are pairs, mirrored so that a linear drift cancels."""


OUTPUTS = (Phase.OUTPUTS,)
"""The pass whose answers are compared token by token."""


OFFERED = (Phase.OFFERED,)
"""The pass whose requests are sent by the clock."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of the spec to run; None means all. Any selection makes the run PARTIAL."""

    arms: tuple[str, ...] | None = None
    levels: tuple[int, ...] | None = None
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One concurrency of a launch: how many requests are timed after how many for warm-up, and in which passes.

    With `per_second` requests are sent by the clock at that rate, and the concurrency is 0.
    """

    concurrency: int
    requests: int
    warmup_requests: int
    passes: tuple[Phase, ...] = (Phase.TIMED,)
    per_second: float | None = None

    @property
    def sent(self) -> int:
        """Requests of all passes, warm-up included."""
        return self.warmup_requests + len(self.passes) * self.requests


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """One server start. `block` says which part of the prompts it sends."""

    block: int
    position: int
    arm: str
    role: Role
    cells: tuple[PlannedCell, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All launches in order; `declarations` say what was left out of the spec."""

    launches: tuple[PlannedLaunch, ...]
    declarations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timing:
    """What an estimate of duration assumes: a start, and a decode iteration that gives each request one token."""

    startup_s: Seconds
    iteration_s: Seconds


_STANDIN = Timing(1.5, 0.008)
_GPU = Timing(120.0, 0.030)
# On two quiet cores: a start takes 25 to 45 s, a token for each request 0.1 s alone and 0.3 s among eight.
_CPU = Timing(40.0, 0.2)


def timing_of(spec: Spec) -> Timing:
    """What to assume of the engine that `spec` asks for."""
    if spec.engine.simulated:
        return _STANDIN
    return _CPU if spec.engine.image == "cpu" else _GPU


def make_plan(spec: Spec, selection: Selection | None = None) -> Plan:
    """The plan of `spec`, or of the selected part of it.

    A block holds every arm once in a seeded random order and the next block is its mirror, so that a linear
    drift cancels; with two arms that is ABBA. Arms of `design.once` are in the first block alone. All arms of a block
    visit the concurrencies in the same random order. Raises SpecError when the selection names something the spec
    does not have.
    """
    selection = selection or Selection()
    _check(selection, spec)
    blocks = selection.blocks or spec.design.blocks
    rng = np.random.default_rng(spec.design.seed)
    entries = _entries(spec, selection)
    launches: list[PlannedLaunch] = []
    order = entries
    for block in range(blocks):
        order = [entries[i] for i in rng.permutation(len(entries))] if block % 2 == 0 else order[::-1]
        here = [entry for entry in order if block == 0 or entry[0] not in spec.design.once]
        levels = selection.levels or spec.load.concurrency
        cells = (
            *(_cell(spec, levels[i]) for i in rng.permutation(len(levels))),
            *_offered(spec, selection),
            *_outputs(spec),
        )
        launches += [PlannedLaunch(block, at, arm, role, cells) for at, (arm, role) in enumerate(here)]
    if spec.design.closing_baseline:
        first = next(launch for launch in launches if launch.arm == _baseline(spec))
        launches.append(PlannedLaunch(first.block, len(entries), first.arm, Role.CLOSING, first.cells))
    if (traced := spec.design.trace_cost) is not None and (traced, Role.MEASURE) in entries:
        timed = (cell for cell in launches[0].cells if cell.passes == (Phase.TIMED,))
        toggled = tuple(replace(cell, passes=TOGGLED) for cell in timed)
        launches.append(PlannedLaunch(0, len(entries) + 1, traced, Role.TRACE_COST, toggled))
    return Plan(tuple(launches), _declarations(spec, selection))


def estimate_seconds(plan: Plan, *, timing: Timing, output_tokens: float) -> Seconds:
    """Duration of the plan under `timing`."""
    cells = [cell for launch in plan.launches for cell in launch.cells]
    waves = sum(
        len(cell.passes) * -(-cell.requests // cell.concurrency) + -(-cell.warmup_requests // cell.concurrency)
        for cell in cells
        if cell.per_second is None
    )
    offered = [cell.requests / cell.per_second for cell in cells if cell.per_second is not None]
    answer_s = output_tokens * timing.iteration_s
    return len(plan.launches) * timing.startup_s + waves * answer_s + sum(span + answer_s for span in offered)


def _check(selection: Selection, spec: Spec) -> None:
    for name in selection.arms or ():
        if name not in {arm.name for arm in spec.arms}:
            raise SpecError(f"--arms {name}: no such arm; the spec has {', '.join(arm.name for arm in spec.arms)}")
    if selection.arms is not None and _baseline(spec) not in selection.arms:
        raise SpecError(f"--arms leaves out `{_baseline(spec)}`, so nothing can be compared; add it")
    for level in selection.levels or ():
        if level not in spec.load.concurrency:
            raise SpecError(f"--levels {level}: not in the spec, which has {_join(spec.load.concurrency)}")
    if selection.blocks is not None and not 1 <= selection.blocks <= spec.design.blocks:
        raise SpecError(
            f"--blocks {selection.blocks}: the spec has {spec.design.blocks}; give 1 to {spec.design.blocks}"
        )


def _entries(spec: Spec, selection: Selection) -> list[tuple[str, Role]]:
    arms = [arm.name for arm in spec.arms if selection.arms is None or arm.name in selection.arms]
    entries = [(name, Role.MEASURE) for name in arms]
    return [*entries, (_baseline(spec), Role.AA_SPEED)] if spec.design.aa_speed else entries


def _baseline(spec: Spec) -> str:
    return next(arm.name for arm in spec.arms if isinstance(arm, BaselineArm))


def _cell(spec: Spec, concurrency: int) -> PlannedCell:
    """Warm-up fills every slot of the cell at least once."""
    return PlannedCell(concurrency, spec.load.requests(concurrency), max(spec.load.warmup_requests, concurrency))


def _offered(spec: Spec, selection: Selection) -> tuple[PlannedCell, ...]:
    """Rates after the closed loops, ascending; a selection of concurrencies leaves them out."""
    rule = spec.load.arrival if selection.levels is None else None
    rates = sorted(rule.rates) if rule else ()
    return tuple(PlannedCell(0, rule.requests, 0, OFFERED, rate) for rate in rates if rule)


def _outputs(spec: Spec) -> tuple[PlannedCell, ...]:
    """Cells without a clock, after those with one: nothing that was timed has seen what they do to the server."""
    rule = spec.losslessness
    levels = rule.concurrency if rule.prompts else ()
    return tuple(PlannedCell(level, rule.prompts, 0, OUTPUTS) for level in levels)


def _declarations(spec: Spec, selection: Selection) -> tuple[str, ...]:
    parts = []
    if selection.arms is not None:
        parts.append(f"arms {_join(selection.arms)} of {_join(arm.name for arm in spec.arms)}")
    if selection.levels is not None:
        parts.append(f"concurrency {_join(selection.levels)} of {_join(spec.load.concurrency)}")
    if selection.blocks is not None:
        parts.append(f"{selection.blocks} of {spec.design.blocks} blocks")
    return tuple(f"PARTIAL: {part}" for part in parts)


def selection_of(declarations: Iterable[str]) -> Selection:
    """The selection that a run's declarations tell of."""
    texts = tuple(declarations)
    said = {match[1]: match[2] for one in texts if (match := _DECLARED.match(one))}
    blocks = next((match[1] for one in texts if (match := _BLOCKS.match(one))), None)
    return Selection(
        arms=tuple(said["arms"].split(", ")) if "arms" in said else None,
        levels=tuple(map(int, said["concurrency"].split(", "))) if "concurrency" in said else None,
        blocks=int(blocks) if blocks else None,
    )


_DECLARED = re.compile(r"PARTIAL: (arms|concurrency) (.+?) of ")
_BLOCKS = re.compile(r"PARTIAL: (\d+) of \d+ blocks")


def _join(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)
