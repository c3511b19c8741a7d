"""The cells of a launch that is up: each is warmed up, timed and stored, with its part of the trace."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kit.analysis import second_looks
from kit.checks import disturbed
from kit.errors import ServerError, TraceError
from kit.importers.trace_tail import TraceTail
from kit.load import (
    ClientHealth,
    Exchange,
    Job,
    Patience,
    Prompt,
    coalesced,
    drive,
    drive_schedule,
    due_times,
    run,
    sent,
    to_record,
)
from kit.pipeline.watcher import Watcher
from kit.plan import OUTPUTS, TOGGLED, PlannedCell
from kit.provenance import GpuWatch
from kit.records import Cell, Launch, Outcome, Phase, Repetition, RequestRecord
from kit.runtime import Endpoint, flush_cache, server_info, set_trace
from kit.sglang import effective_config, generate_payload, outputs_payload, prefill_payload, trace_problem
from kit.spec import Arm, BaselineArm, Spec
from kit.store import add_gpu_samples, add_repetition, read_run

__all__ = ["Session", "ask_again", "measure_cell", "now", "require_trace"]

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Session:
    """One launch that is up; `block` are its prompts, `out` is the run file, `per_second` the rate of an open loop."""

    spec: Spec
    out: Path
    launch: Launch
    arm: Arm
    block: tuple[Prompt, ...]
    endpoint: Endpoint
    trace: TraceTail
    watcher: Watcher
    per_second: float | None = None


def require_trace(info: Mapping[str, Any], *, enabled: bool = True, warm: bool = False) -> None:
    """Raises TraceError when what a server says of its trace does not prove what it runs (`trace_problem`)."""
    if problem := trace_problem(info, enabled=enabled, warm=warm):
        raise TraceError(problem)


def measure_cell(session: Session, planned: PlannedCell, position: int) -> None:
    """Warm up with exactly the measured shape, then time; caches are emptied before each.

    A pass that the host disturbed is kept as such and made again, up to the limit; the last one stands as it is. A
    launch that asks what the trace costs is timed with and without it in turns instead.
    """
    cell = Cell(session.launch.launch * 1000 + position, session.launch.launch, planned.concurrency, position)
    session.watcher.step(f"{session.arm.name} at concurrency {planned.concurrency}")
    if planned.passes == OUTPUTS:
        limit = session.spec.losslessness.max_output_tokens
        prompts = tuple(replace(prompt, max_new_tokens=limit) for prompt in session.block[: planned.requests])
        _repeat(session, cell, 1, Phase.OUTPUTS, prompts)
        return
    prompts = sent(session.block, planned.requests, mix=session.spec.workload.mix)
    if planned.per_second is not None:
        session.watcher.step(f"{session.arm.name} at {planned.per_second:g} requests per second")
        offered = replace(session, per_second=planned.per_second)
        _repeat(offered, cell, 1, Phase.OFFERED, prompts)
        return
    _repeat(session, cell, 0, Phase.WARMUP, session.block[-planned.warmup_requests :])
    if planned.passes == TOGGLED:
        _toggle(session, cell, prompts)
        return
    for attempt in range(1, _ATTEMPTS + 1):
        if _repeat(session, cell, attempt, Phase.TIMED, prompts) is not Phase.DISTURBED:
            return


@dataclass(frozen=True, slots=True)
class _Continuation(Prompt):
    """A prompt and the beginning of an answer to it, as token ids."""

    ids: tuple[int, ...] = ()


def ask_again(session: Session, position: int) -> None:
    """Let the baseline's server choose once more wherever outputs part, and at other places for comparison."""
    looks = second_looks(read_run(session.out))
    for at, concurrency in enumerate(dict.fromkeys(look.concurrency for look in looks)):
        mine = (look for look in looks if look.concurrency == concurrency)
        prompts = tuple(_Continuation(look.prompt, look.prompt_class, "", 1, look.ids) for look in mine)
        number = session.launch.launch * 1000 + position + at
        cell = Cell(number, session.launch.launch, concurrency, position + at)
        _repeat(session, cell, 1, Phase.PREFILL, prompts)


def _toggle(session: Session, cell: Cell, prompts: tuple[Prompt, ...]) -> None:
    """Time the cell with and without the trace in turns; in the end it is on."""
    for attempt, phase in enumerate(TOGGLED, start=1):
        set_trace(session.endpoint, on=phase is Phase.TRACED)
        _repeat(session, cell, attempt, phase, prompts)
    set_trace(session.endpoint, on=True)


def _repeat(session: Session, cell: Cell, attempt: int, phase: Phase, prompts: tuple[Prompt, ...]) -> Phase:
    """Send `prompts` once and store the repetition with its part of the trace; attempt 0 is the warm-up.

    Raises ServerError, after storing, when the server did not outlive the pass, or TraceError when its trace does not
    prove what ran; ImportFileError, before storing, when the trace cannot be read.
    """
    flush_cache(session.endpoint.base_url)
    before, logged = _standin(server_info(session.endpoint.base_url)), _log_lines(session)
    number = cell.cell * 10 + attempt
    started_utc, started_ns = now(), time.monotonic_ns()
    with GpuWatch(number) as watch:
        exchanges, health = _driven(session, cell, _jobs(session, cell, attempt, phase, prompts))
    ended_ns = time.monotonic_ns()
    hung = any(exchange.broken is Outcome.STALLED for exchange in exchanges)
    played, broken = (None, _hang(session)) if hung else _settled(session, before, traced=phase is not Phase.UNTRACED)
    records = _records(exchanges, prompts, number, speculative=not isinstance(session.arm, BaselineArm))
    together = sum(coalesced(record.chunk_ns.tolist()) for record in records)
    client = asdict(health) | {"coalesced": together, "standin": played, "log_lines": [logged, _log_lines(session)]}
    if session.per_second is not None:
        client["per_second"] = session.per_second
    repetition = Repetition(number, cell.cell, phase, started_utc, started_ns, ended_ns, client)
    # A pass that cannot be made again stands, disturbed or not.
    again = phase is Phase.TIMED and attempt < _ATTEMPTS and broken is None
    if again and disturbed(repetition, noise_threshold=session.spec.decision.noise_threshold):
        repetition = replace(repetition, phase=Phase.DISTURBED)
    add_repetition(session.out, cell, repetition, records, session.trace.read_new())
    add_gpu_samples(session.out, watch.samples)
    if broken is not None:
        raise broken
    return repetition.phase


def _driven(session: Session, cell: Cell, jobs: list[Job]) -> tuple[list[Exchange], ClientHealth]:
    """A closed loop, or with a rate an open one."""
    load, url, on_done = session.spec.load, session.endpoint.base_url, session.watcher.advance
    patience = Patience(load.request_timeout_s, load.silence_timeout_s)
    if session.per_second is None or load.arrival is None:
        return run(drive(url, jobs, concurrency=cell.concurrency, patience=patience, on_done=on_done))
    due_s = due_times(load.arrival, requests=len(jobs), per_second=session.per_second)
    return run(drive_schedule(url, jobs, due_s=due_s, patience=patience, on_done=on_done))


def _hang(session: Session) -> ServerError:
    """A server that still listens, and sends nothing to anybody."""
    return ServerError(
        f"hang: nothing came for any request in flight for {session.spec.load.silence_timeout_s:g} s; "
        "the point is not measured, and the server is stopped"
    )


def _settled(
    session: Session, before: Mapping[str, int], *, traced: bool
) -> tuple[dict[str, int] | None, ServerError | None]:
    """Empty the idle server's caches, which ends the pass in its trace and log.

    What a stand-in played since `before` (None: a real server), and the error of a server that is no longer there, or
    whose trace does not prove the pass.
    """
    played = None
    try:
        flush_cache(session.endpoint.base_url)
        info = server_info(session.endpoint.base_url)
        played = {name: count - before[name] for name, count in _standin(info).items()} or None
        if session.spec.engine.runtime != "attach":
            require_trace(info, enabled=traced, warm=True)
    except ServerError as error:
        return played, error
    return played, None


def _log_lines(session: Session) -> int:
    """Lines of the server's log so far, by which a failed answer finds its traceback."""
    return session.endpoint.log.read_bytes().count(b"\n")


def _standin(info: Mapping[str, Any]) -> dict[str, int]:
    """How many iterations the stand-in has played and how many of them ended late; empty for a real server."""
    counts: dict[str, int] = effective_config(info).get("standin") or {}
    return counts


def _jobs(session: Session, cell: Cell, attempt: int, phase: Phase, prompts: tuple[Prompt, ...]) -> list[Job]:
    """Fixed-width ids, because SGLang aborts by prefix."""
    kind = {Phase.OUTPUTS: "X", Phase.PREFILL: "P", Phase.OFFERED: "R"}.get(phase, "C")
    # Cells that send by the clock have no concurrency, and their place tells them apart.
    prefix = f"L{cell.launch:03d}-{kind}{cell.concurrency or cell.position:04d}-{attempt}"
    rids = [f"{prefix}{index:05d}" for index in range(len(prompts))]
    return [Job(rid, _payload(session, phase, prompt, rid)) for rid, prompt in zip(rids, prompts, strict=True)]


def _payload(session: Session, phase: Phase, prompt: Prompt, rid: str) -> dict[str, Any]:
    if isinstance(prompt, _Continuation):
        return prefill_payload(prompt.ids, rid=rid)
    if phase is Phase.OUTPUTS:
        reference = isinstance(session.arm, BaselineArm)
        return outputs_payload(prompt.text, rid=rid, max_new_tokens=prompt.max_new_tokens, reference=reference)
    workload = session.spec.workload
    return generate_payload(prompt.text, rid=rid, max_new_tokens=prompt.max_new_tokens, workload=workload)


def _records(
    exchanges: list[Exchange], prompts: tuple[Prompt, ...], repetition: int, *, speculative: bool
) -> list[RequestRecord]:
    return [
        to_record(exchange, prompt, repetition=repetition, index=index, speculative=speculative)
        for index, (exchange, prompt) in enumerate(zip(exchanges, prompts, strict=True))
    ]


def now() -> str:
    """The time of day as it is stored: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
