"""Measuring: every launch of the plan is started, loaded at every concurrency, stored and stopped."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from kit import contract
from kit.diagnosis import Cause, diagnose
from kit.errors import ImportFileError, Interrupted, ServerError, TraceError
from kit.importers.trace_tail import TraceTail
from kit.load import Prompts
from kit.pipeline.agenda import Appointment
from kit.pipeline.passes import Session, ask_again, measure_cell, now, require_trace
from kit.pipeline.watcher import Watcher
from kit.plan import PlannedLaunch
from kit.records import Launch, LaunchStatus, Origin, Role
from kit.runtime import Endpoint, Order, Runtime, Server, server_info
from kit.sglang import adaptive_config_text, identity_problem, launch_flags, leftover_problem
from kit.spec import Arm, Spec
from kit.store import add_launch

__all__ = ["Experiment", "measure"]

_STARTS_BEFORE_GIVING_UP = 3


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything a measurement needs; `out` is the run file, which exists and has its header."""

    spec: Spec
    prompts: Prompts
    agenda: tuple[Appointment, ...]
    runtime: Runtime
    out: Path

    @property
    def work(self) -> Path:
        """Folder of logs and traces while the run lasts."""
        return self.out.with_suffix(".work")


def measure(experiment: Experiment, *, watcher: Watcher) -> None:
    """Measure the agenda into the run file. A launch that fails is stored and the next one is tried.

    Raises Interrupted when the user stops it (finished repetitions are kept) and ServerError when no launch worked.
    """
    launches = experiment.agenda
    total = sum(cell.sent for one in launches for cell in one.planned.cells)
    worked, failures = 0, Counter[str]()
    started = time.monotonic()
    watcher.expect(total)
    try:
        for at, one in enumerate(launches):
            if _over_budget(experiment.spec, started):
                watcher.say(f"the budget is spent; {len(launches) - at} launches are left out")
                break
            arm = one.planned.arm
            if failures[arm] < _STARTS_BEFORE_GIVING_UP:
                done = _run_launch(experiment, one.number, one.planned, watcher)
                worked, failures[arm] = worked + done, failures[arm] + (not done)
    finally:
        shutil.rmtree(experiment.work, ignore_errors=True)
    if launches and not worked:
        raise ServerError(f"no launch worked; `speckit show {experiment.out}` lists why")


def _over_budget(spec: Spec, started: float) -> bool:
    return spec.budget.minutes is not None and time.monotonic() - started > spec.budget.minutes * 60


def _run_launch(experiment: Experiment, ordinal: int, planned: PlannedLaunch, watcher: Watcher) -> bool:
    """Start, load and stop one server; whether it worked. Its log is stored however it ends."""
    arm = experiment.spec.arm(planned.arm)
    order = _order(experiment, ordinal, arm)
    server = experiment.runtime.server(order)
    launch = Launch(
        launch=ordinal,
        block=planned.block,
        position=planned.position,
        arm=planned.arm,
        role=planned.role,
        command=order.flags,
        started_utc=now(),
        status=LaunchStatus.INTERRUPTED,
    )
    watcher.step(f"{planned.arm}: starting")
    try:
        endpoint = server.start()
        launch = _described(launch, endpoint)
        _require_own_server(experiment, launch, arm)
        add_launch(experiment.out, launch)
        session = _session(experiment, launch, planned, endpoint, watcher)
        for position, cell in enumerate(planned.cells):
            measure_cell(session, cell, position)
        if planned.role is Role.CLOSING and experiment.spec.losslessness.prompts:
            ask_again(session, len(planned.cells))
        launch = replace(launch, status=LaunchStatus.COMPLETED, server_info=server_info(endpoint.base_url))
    except (TraceError, ImportFileError) as error:
        launch = replace(launch, status=LaunchStatus.VOID, failure=str(error))
    except ServerError as error:
        launch = replace(launch, status=LaunchStatus.FAILED, failure=str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        launch = replace(launch, failure="stopped by the user")
        raise Interrupted(
            f"stopped during launch {ordinal} ({planned.arm}); finished repetitions are in {experiment.out}"
        ) from None
    finally:
        launch = _ended(launch, server, experiment.spec.engine.sglang)
        add_launch(experiment.out, launch)
    if launch.failure:
        watcher.say(f"launch {ordinal} ({planned.arm}): {launch.failure}")
    return launch.status is LaunchStatus.COMPLETED


def _ended(launch: Launch, server: Server, sglang: str) -> Launch:
    """The launch with its server stopped: exit status, log and, where it failed while it served, what its log shows."""
    code, log = server.stop(), server.log_text()
    launch = replace(launch, exit_code=code, log=log)
    if launch.status is LaunchStatus.FAILED and launch.server_info is not None:
        found = diagnose(log, exit_code=code, names=contract.load(sglang))
        if found.cause not in (Cause.NONE, Cause.STOPPED):
            launch = replace(launch, failure=f"{launch.failure}; {found.title}; {found.advice}")
    return launch


def _order(experiment: Experiment, ordinal: int, arm: Arm) -> Order:
    folder = experiment.work / f"launch-{ordinal:03d}"
    folder.mkdir(parents=True)
    config = folder / "adaptive.json"
    if text := adaptive_config_text(arm):
        config.write_text(text, encoding="utf-8")
    return Order(
        launch=ordinal,
        arm=arm.name,
        sglang=experiment.spec.engine.sglang,
        flags=launch_flags(experiment.spec, arm, adaptive_config=str(config)),
        env=experiment.spec.server.env,
        folder=folder,
        startup_timeout_s=experiment.spec.engine.startup_timeout_s,
    )


def _described(launch: Launch, endpoint: Endpoint) -> Launch:
    """The launch with what its server says about itself."""
    info = server_info(endpoint.base_url)
    return replace(launch, command=endpoint.command, startup_s=endpoint.startup_s, server_info=info)


def _session(
    experiment: Experiment, launch: Launch, planned: PlannedLaunch, endpoint: Endpoint, watcher: Watcher
) -> Session:
    block = experiment.prompts.part(planned.block, experiment.spec.design.blocks)
    trace = TraceTail(endpoint.trace, launch.launch)
    arm = experiment.spec.arm(planned.arm)
    return Session(experiment.spec, experiment.out, launch, arm, block, endpoint, trace, watcher)


def _require_own_server(experiment: Experiment, launch: Launch, arm: Arm) -> None:
    """Raises ServerError when the server that answers is not the one that was launched for `arm`, or is not traced.

    A server that somebody else started is older than its launch by nature, and owes no trace.
    """
    info, origin = launch.server_info or {}, experiment.runtime.origin
    problem = identity_problem(info, experiment.spec, arm)
    if problem is None and origin is not Origin.ATTACHED:
        problem = leftover_problem(
            info,
            command=launch.command,
            started_utc=launch.started_utc,
            startup_s=launch.startup_s if origin is Origin.MEASURED else None,
        )
    if problem:
        raise ServerError(problem)
    if origin is not Origin.ATTACHED:
        require_trace(info)
