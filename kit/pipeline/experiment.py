"""Measuring: every launch of the plan is started, loaded at every concurrency, stored and stopped."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from kit import contract
from kit.checks import disturbed
from kit.diagnosis import Cause, diagnose
from kit.errors import Interrupted, ServerError
from kit.importers.trace_tail import TraceTail
from kit.load import Exchange, Job, Prompt, Prompts, drive, to_record
from kit.pipeline.agenda import Appointment
from kit.plan import PlannedCell, PlannedLaunch
from kit.records import Cell, Launch, LaunchStatus, Origin, Phase, Repetition, RequestRecord
from kit.runtime import Endpoint, Order, Runtime, Server, flush_cache, server_info
from kit.sglang import (
    adaptive_config_text,
    effective_config,
    generate_payload,
    identity_problem,
    launch_flags,
    leftover_problem,
)
from kit.spec import Arm, BaselineArm, Spec
from kit.store import add_launch, add_repetition

__all__ = ["Experiment", "Watcher", "measure"]

_STARTS_BEFORE_GIVING_UP = 3
_ATTEMPTS = 3


class Watcher(Protocol):
    """Whoever wants to know how a measurement goes. Every call is cheap; nothing waits for an answer."""

    def expect(self, requests: int) -> None:
        """So many requests will be sent."""

    def step(self, what: str) -> None:
        """Now doing `what`: an arm and a concurrency."""

    def advance(self) -> None:
        """One more request has ended."""

    def say(self, message: str) -> None:
        """Something the user should read now."""


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


@dataclass(frozen=True, slots=True)
class _Session:
    """One launch that is up."""

    experiment: Experiment
    launch: Launch
    arm: Arm
    block: tuple[Prompt, ...]
    endpoint: Endpoint
    trace: TraceTail
    watcher: Watcher


def measure(experiment: Experiment, *, watcher: Watcher) -> None:
    """Measure the agenda into the run file. A launch that fails is stored and the next one is tried.

    Raises Interrupted when the user stops it (finished repetitions are kept) and ServerError when no launch worked.
    """
    launches = experiment.agenda
    total = sum(cell.requests + cell.warmup_requests for one in launches for cell in one.planned.cells)
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
        started_utc=_now(),
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
            _measure_cell(session, cell, position)
        launch = replace(launch, status=LaunchStatus.COMPLETED, server_info=server_info(endpoint.base_url))
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
        known = contract.load(sglang)
        found = diagnose(log, exit_code=code, flags=known.flags, sampling_keys=known.sampling_keys)
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
) -> _Session:
    block = experiment.prompts.part(planned.block, experiment.spec.design.blocks)
    trace = TraceTail(endpoint.trace, launch.launch)
    return _Session(experiment, launch, experiment.spec.arm(planned.arm), block, endpoint, trace, watcher)


def _require_own_server(experiment: Experiment, launch: Launch, arm: Arm) -> None:
    """Raises ServerError when the server that answers is not the one that was launched for `arm`."""
    info = launch.server_info or {}
    problem = identity_problem(info, experiment.spec, arm) or leftover_problem(
        info,
        command=launch.command,
        started_utc=launch.started_utc,
        startup_s=launch.startup_s if experiment.runtime.origin is Origin.MEASURED else None,
    )
    if problem:
        raise ServerError(problem)


def _measure_cell(session: _Session, planned: PlannedCell, position: int) -> None:
    """Warm up with exactly the measured shape, then time; caches are emptied before each.

    A pass that the host disturbed is kept as such and made again, up to the limit; the last one stands as it is.
    """
    cell = Cell(session.launch.launch * 1000 + position, session.launch.launch, planned.concurrency, position)
    session.watcher.step(f"{session.arm.name} at concurrency {planned.concurrency}")
    _repeat(session, cell, 0, session.block[-planned.warmup_requests :])
    for attempt in range(1, _ATTEMPTS + 1):
        if _repeat(session, cell, attempt, session.block[: planned.requests]) is not Phase.DISTURBED:
            return


def _repeat(session: _Session, cell: Cell, attempt: int, prompts: tuple[Prompt, ...]) -> Phase:
    """Send `prompts` once and store the repetition with its part of the trace; attempt 0 is the warm-up.

    Raises ServerError, after storing, when the server did not outlive the pass.
    """
    flush_cache(session.endpoint.base_url)
    before, logged = _standin(session), _log_lines(session)
    number = cell.cell * 10 + attempt
    started_utc, started_ns = _now(), time.monotonic_ns()
    exchanges, health = asyncio.run(
        drive(
            session.endpoint.base_url,
            _jobs(session, cell, attempt, prompts),
            concurrency=cell.concurrency,
            timeout_s=session.experiment.spec.load.request_timeout_s,
            on_done=session.watcher.advance,
        )
    )
    ended_ns = time.monotonic_ns()
    played, broken = _settled(session, before)
    client = asdict(health) | {"standin": played, "log_lines": [logged, _log_lines(session)]}
    phase = Phase.TIMED if attempt else Phase.WARMUP
    repetition = Repetition(number, cell.cell, phase, started_utc, started_ns, ended_ns, client)
    if 0 < attempt < _ATTEMPTS and disturbed(
        repetition, noise_threshold=session.experiment.spec.decision.noise_threshold
    ):
        repetition = replace(repetition, phase=Phase.DISTURBED)
    records = _records(exchanges, prompts, number, speculative=not isinstance(session.arm, BaselineArm))
    add_repetition(session.experiment.out, cell, repetition, records, session.trace.read_new())
    if broken is not None:
        raise broken
    return repetition.phase


def _settled(session: _Session, before: dict[str, int]) -> tuple[dict[str, int] | None, ServerError | None]:
    """Empty the idle server's caches, which ends the pass in its trace and log.

    What a stand-in played since `before` (None: a real server), and the error of a server that is no longer there.
    """
    try:
        flush_cache(session.endpoint.base_url)
        return {name: count - before[name] for name, count in _standin(session).items()} or None, None
    except ServerError as error:
        return None, error


def _log_lines(session: _Session) -> int:
    """Lines of the server's log so far, by which a failed answer finds its traceback."""
    return session.endpoint.log.read_bytes().count(b"\n")


def _standin(session: _Session) -> dict[str, int]:
    """How many iterations the stand-in has played and how many of them ended late; empty for a real server."""
    counts: dict[str, int] = effective_config(server_info(session.endpoint.base_url)).get("standin") or {}
    return counts


def _jobs(session: _Session, cell: Cell, attempt: int, prompts: tuple[Prompt, ...]) -> list[Job]:
    """Fixed-width ids, because SGLang aborts by prefix."""
    workload = session.experiment.spec.workload
    prefix = f"L{cell.launch:03d}-C{cell.concurrency:04d}-{attempt}"
    rids = [f"{prefix}{index:05d}" for index in range(len(prompts))]
    return [
        Job(rid, generate_payload(prompt.text, rid=rid, max_new_tokens=prompt.max_new_tokens, workload=workload))
        for rid, prompt in zip(rids, prompts, strict=True)
    ]


def _records(
    exchanges: list[Exchange], prompts: tuple[Prompt, ...], repetition: int, *, speculative: bool
) -> list[RequestRecord]:
    return [
        to_record(exchange, prompt, repetition=repetition, index=index, speculative=speculative)
        for index, (exchange, prompt) in enumerate(zip(exchanges, prompts, strict=True))
    ]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
