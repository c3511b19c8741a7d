"""From a command line to a launch that can be served, logged as SGLang logs its way up, unless it dies on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kit.contract import load
from kit.standin.deaths import fail_launch
from kit.standin.faults import parse_faults
from kit.standin.flags import asked_version, parse_arguments
from kit.standin.intake import Intake
from kit.standin.journal import banner
from kit.standin.running import Launch
from kit.standin.sabotage import sabotage_flags, sabotage_settings, sabotage_world
from kit.standin.settings import resolve
from kit.standin.trace import TraceFile
from kit.standin.world import load_world

__all__ = ["prepare"]


def prepare(argv: Sequence[str]) -> Launch:
    """The launch that the command line asks for.

    Raises SpecError for a version, world or fault that there is not, and what SGLang does not start with as `resolve`
    does; exits with status 2 on a flag that SGLang's parser refuses. A launch that is to fail does not return.
    """
    contract = load(asked_version(argv))
    flags = parse_arguments(argv, contract=contract)
    faults = parse_faults(flags.fault)
    world = sabotage_world(load_world(flags.world), faults)
    settings = sabotage_settings(resolve(sabotage_flags(flags, faults), contract=contract), faults)
    banner(settings)
    if faults.launch_failure is not None:
        fail_launch(faults.launch_failure, settings)
    intake = Intake(world, settings=settings, contract=contract, leftover=faults.leftover_cache)
    launch = Launch(world, settings, intake, flags.launch_seed, None, faults)
    return launch if faults.drop_trace else replace(launch, trace=_trace(launch))


def _trace(launch: Launch) -> TraceFile | None:
    folder = os.environ.get("SPECKIT_TRACE_DIR")
    return TraceFile(Path(folder), largest_graph=launch.largest_graph, faults=launch.faults) if folder else None
