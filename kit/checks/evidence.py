"""What a check looks at, and how it says what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kit.analysis import Analysis, CellEvidence, CellResult, FailedAnswer, failed_answers
from kit.checks.results import Code, Doubt, Scope, Severity
from kit.records import Launch, LaunchStatus, Phase, Repetition, Role, RunFacts
from kit.sglang import effective_config
from kit.spec import Arm, Spec

__all__ = ["Evidence", "about_arm", "about_cell", "about_launch", "about_run"]


@dataclass(frozen=True)
class Evidence:
    """The facts, the spec that was registered, and what analysis made of them."""

    facts: RunFacts
    spec: Spec
    analysis: Analysis

    @cached_property
    def launches(self) -> Mapping[int, Launch]:
        """Launches by number."""
        return {launch.launch: launch for launch in self.facts.launches}

    @cached_property
    def asked_for(self) -> tuple[Arm, ...]:
        """Arms that were to be launched: all of the spec, or those that a declared selection left."""
        selected = any(text.startswith("PARTIAL: arms ") for text in self.facts.header.declarations)
        launched = {launch.arm for launch in self.facts.launches}
        return tuple(arm for arm in self.spec.arms if not selected or arm.name in launched)

    @cached_property
    def served(self) -> frozenset[int]:
        """Launches that were measured at some concurrency, or should have been: what a doubt could be about."""
        measured = {cell.launch for cell in self.analysis.cells}
        ended = {one.launch for one in self.facts.launches if one.status is LaunchStatus.COMPLETED}
        return frozenset(measured | ended)

    @cached_property
    def failed(self) -> tuple[FailedAnswer, ...]:
        """Every failed request with the traceback that explains it, if the server's log has one."""
        return failed_answers(self.facts)

    def arm(self, launch: Launch) -> Arm:
        """The arm that a launch served."""
        return self.spec.arm(launch.arm)

    def cells(self) -> Iterator[tuple[CellResult, CellEvidence]]:
        """Every measured cell with the counts behind it."""
        found = {evidence.cell: evidence for evidence in self.analysis.evidence}
        for cell in self.analysis.cells:
            yield cell, found[cell.cell]

    def passes(self) -> Iterator[tuple[CellResult, Repetition]]:
        """Every measured cell with its timed repetition."""
        timed = {rep.cell: rep for rep in self.facts.repetitions if rep.phase is Phase.TIMED}
        for cell in self.analysis.cells:
            yield cell, timed[cell.cell]

    def configs(self) -> Iterator[tuple[Launch, Mapping[str, Any]]]:
        """Launches whose server described itself, with their effective configuration."""
        for launch in self.facts.launches:
            if launch.server_info is not None:
                yield launch, effective_config(launch.server_info)

    def measured_blocks(self, arm: str) -> int:
        """Blocks in which a measuring launch of `arm` gave at least one cell."""
        return len({cell.block for cell in self.analysis.cells if cell.arm == arm and cell.role is Role.MEASURE})


def about_run(code: Code, severity: Severity, message: str, hint: str) -> Doubt:
    """A doubt about everything."""
    return Doubt(code, severity, Scope.RUN, message, hint)


def about_arm(arm: str, code: Code, severity: Severity, message: str, hint: str) -> Doubt:
    """A doubt about every cell of an arm."""
    return Doubt(code, severity, Scope.ARM, message, hint, arm=arm)


def about_launch(launch: Launch, code: Code, severity: Severity, message: str, hint: str) -> Doubt:
    """A doubt about every cell of a launch."""
    return Doubt(code, severity, Scope.LAUNCH, message, hint, arm=launch.arm, launch=launch.launch)


def about_cell(cell: CellResult, code: Code, severity: Severity, message: str, hint: str) -> Doubt:
    """A doubt about one cell."""
    return Doubt(
        code,
        severity,
        Scope.CELL,
        message,
        hint,
        arm=cell.arm,
        launch=cell.launch,
        cell=cell.cell,
        concurrency=cell.concurrency,
    )
