"""A whole run in virtual time: the stand-in's engine serves every cell of the plan, and nobody waits for it.

The facts are the same records that a measured run stores: requests with their chunks, iterations and rounds of the
trace, launches with what their servers say. Prompts are new for every seed, so that a run is a draw from its world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from kit import __version__
from kit.plan import PlannedLaunch, make_plan
from kit.records import (
    Cell,
    Iterations,
    Launch,
    LaunchStatus,
    Origin,
    Outcome,
    Phase,
    Repetition,
    RequestRecord,
    Rounds,
    RunFacts,
    RunHeader,
    Trace,
)
from kit.spec import RULES_VERSION, Arm, BaselineArm, Eagle3Arm, Spec, expanded_json, prereg_hash, registered
from kit.standin.engine import Engine, Limits, Speculation
from kit.standin.iteration import Iteration, Kind
from kit.standin.request import Request
from kit.standin.text import Text
from kit.standin.world import World
from kit.units import NS_PER_S, Tokens

__all__ = ["CLASSES", "output_tokens", "prompt_of", "virtual_run"]

CLASSES = ("chat", "code")
PROMPT_TOKENS = 24
SPARE = 16
"""Positions behind the last token, for the drafts of the last round."""
_CREATED = "2026-01-01T00:00:00+00:00"
_COMMIT = "0" * 40
_PAUSE_NS = NS_PER_S


def prompt_of(seed: int, number: int) -> tuple[int, ...]:
    """Token ids of one prompt of the run with that seed; no two runs share a prompt."""
    return (seed, number, *range(2, PROMPT_TOKENS))


def output_tokens(spec: Spec, number: int) -> Tokens:
    """Length asked for, spread evenly over the spec's range and independent of the class."""
    low, high = spec.workload.min_output_tokens, spec.workload.max_output_tokens
    return low + (number // len(CLASSES)) * 7919 % (high - low + 1)


def virtual_run(spec: Spec, world: World, *, seed: int) -> RunFacts:
    """The facts of `spec` measured in `world`; prompts, launches and iterations are drawn from `seed`."""
    run = _Run(spec, world, seed)
    for number, planned in enumerate(make_plan(spec).launches):
        run.serve(number, planned)
    return run.facts()


@dataclass(slots=True)
class _Served:
    """A request on its way, and when its tokens came."""

    request: Request
    number: int
    index: int
    sent_ns: int
    chunks: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """One cell while it is served: `first` is the number of the block's first prompt."""

    engine: Engine
    arm: Arm
    cell: Cell
    first: int
    waiting: Iterator[int]
    served: dict[str, _Served] = field(default_factory=dict)


@dataclass
class _Run:
    """Everything written down while servers run one after the other on one clock."""

    spec: Spec
    world: World
    seed: int
    clock_ns: int = NS_PER_S
    launches: list[Launch] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    repetitions: list[Repetition] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    iterations: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    rows: list[tuple[int, str, int, int, bool]] = field(default_factory=list)
    texts: dict[tuple[int, bool], Text] = field(default_factory=dict)
    counted: int = 0

    def serve(self, number: int, planned: PlannedLaunch) -> None:
        """One launch with all its cells."""
        arm = self.spec.arm(planned.arm)
        self.launches.append(_launch(self.spec, arm, number, planned))
        self.counted = 0
        launch_seed = self.seed * 1000 + number
        engine = Engine(
            self.world,
            speculation=Speculation(arm.num_steps, arm.draft_tokens) if isinstance(arm, Eagle3Arm) else None,
            limits=Limits(running_requests=4096),
            launch_seed=launch_seed,
        )
        first = planned.block * (self.spec.workload.prompts // self.spec.design.blocks)
        for position, one in enumerate(planned.cells):
            cell = Cell(len(self.cells), number, one.concurrency, position)
            self._cell(_Level(engine, arm, cell, first, iter(range(one.requests))))

    def _cell(self, level: _Level) -> None:
        """A closed loop: a finished request is followed by the next at the same instant."""
        self.cells.append(level.cell)
        self.clock_ns += _PAUSE_NS
        began = self.clock_ns
        self._send(level, level.cell.concurrency)
        while (iteration := level.engine.step()) is not None:
            self.clock_ns += round(iteration.duration_s * NS_PER_S)
            self._write(iteration, level)
            for request in iteration.finished:
                one = level.served[request.rid]
                self.requests.append(_record(one, level.cell.cell, level.arm, ended_ns=self.clock_ns))
                self._send(level, 1)
        client = {"cpu_share": 0.0, "loop_lag_s": 0.0, "received_bytes": 1}
        number = level.cell.cell
        self.repetitions.append(Repetition(number, number, Phase.TIMED, _CREATED, began, self.clock_ns, client))

    def _send(self, level: _Level, count: int) -> None:
        for index in islice(level.waiting, count):
            rid, number = f"C{level.cell.cell:04d}-{index:05d}", level.first + index
            text, wanted = self._text(number, level.arm), output_tokens(self.spec, number)
            request = Request(rid=rid, prompt_tokens=PROMPT_TOKENS, text=text, max_new_tokens=wanted)
            level.served[rid] = _Served(request, number, index, self.clock_ns)
            level.engine.submit(request)

    def _text(self, number: int, arm: Arm) -> Text:
        speculates = self.world.draft.divergence > 0 and not isinstance(arm, BaselineArm)
        key = (number, speculates)
        if key not in self.texts:
            length = output_tokens(self.spec, number) + SPARE
            self.texts[key] = self.world.answer(prompt_of(self.seed, number), length=length, speculates=speculates)
        return self.texts[key]

    def _write(self, iteration: Iteration, level: _Level) -> None:
        """Chunks of the rows, and the iteration with its rows unless it is a prefill."""
        for row in iteration.rows:
            one = row.request
            if not row.ghost and one.produced > row.before:
                level.served[one.rid].chunks.append((self.clock_ns, one.produced - row.before))
        if iteration.kind is Kind.PREFILL:
            return
        drafts = -1 if iteration.draft_tokens is None else iteration.draft_tokens
        self.iterations.append((level.cell.launch, self.counted, self.clock_ns, drafts, len(iteration.rows)))
        self.counted += 1
        at = len(self.iterations) - 1
        for request, before, accepted, ghost in iteration.rows:
            self.rows.append((at, request.rid, before, -1 if accepted is None else accepted, ghost))

    def facts(self) -> RunFacts:
        """What was written down."""
        return RunFacts(
            header=_header(self.spec, self.seed),
            launches=tuple(self.launches),
            cells=tuple(self.cells),
            repetitions=tuple(self.repetitions),
            requests=tuple(sorted(self.requests, key=lambda request: (request.repetition, request.index))),
            trace=self._trace(),
        )

    def _trace(self) -> Trace:
        launch, number, ready, drafts, batch = np.array(self.iterations, np.int64).reshape(-1, 5).T
        names = tuple(dict.fromkeys(rid for _, rid, *_ in self.rows))
        code = {rid: at for at, rid in enumerate(names)}
        rows = np.array([(at, code[rid], *rest) for at, rid, *rest in self.rows], np.int64).reshape(-1, 5)
        iteration, rid, before, accepted, ghost = rows.T
        return Trace(
            Iterations.of(
                launch=launch,
                number=number,
                ready_ns=ready,
                draft_tokens=drafts,
                batch_size=batch,
                cuda_graph=np.ones(len(number), bool),
            ),
            Rounds(iteration, rid, before, accepted, ghost != 0, np.zeros(len(rid), bool)),
            names,
        )


def _record(one: _Served, repetition: int, arm: Arm, *, ended_ns: int) -> RequestRecord:
    request, counts = one.request, not isinstance(arm, BaselineArm)
    histogram = tuple(request.histogram) if counts else None
    return RequestRecord(
        repetition=repetition,
        index=one.index,
        rid=request.rid,
        prompt=f"p{one.number:05d}",
        prompt_class=CLASSES[one.number % len(CLASSES)],
        max_new_tokens=request.max_new_tokens,
        sent_ns=one.sent_ns,
        ended_ns=ended_ns,
        outcome=Outcome.OK,
        status=200,
        first_token_ns=one.chunks[0][0],
        finish_reason="length",
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=request.produced,
        cached_tokens=0,
        verify_rounds=sum(histogram) if histogram is not None else None,
        correct_drafts=sum(j * n for j, n in enumerate(histogram)) if histogram is not None else None,
        histogram=histogram,
        retractions=0,
        output_ids=np.array(request.text.tokens[: request.produced], np.int64),
        chunk_ns=np.array([at for at, _ in one.chunks], np.int64),
        chunk_tokens=np.array([tokens for _, tokens in one.chunks], np.int64),
    )


def _launch(spec: Spec, arm: Arm, number: int, planned: PlannedLaunch) -> Launch:
    info: dict[str, Any] = {
        "model_path": spec.models.target.path,
        "version": spec.engine.sglang,
        "max_running_requests": spec.server.max_running_requests,
        "max_total_num_tokens": 100_000,
        "speculative_algorithm": None,
    }
    if isinstance(arm, Eagle3Arm):
        info |= {
            "speculative_algorithm": "EAGLE3",
            "speculative_eagle_topk": arm.topk,
            "speculative_num_steps": arm.num_steps,
        }
    return Launch(
        launch=number,
        block=planned.block,
        position=planned.position,
        arm=arm.name,
        role=planned.role,
        command=("virtual", arm.name),
        started_utc=_CREATED,
        status=LaunchStatus.COMPLETED,
        startup_s=0.0,
        exit_code=0,
        server_info=info,
        log="ready",
    )


def _header(spec: Spec, seed: int) -> RunHeader:
    workload = f"{seed:064x}"
    return RunHeader(
        run_id=f"virtual-{seed}",
        origin=Origin.SIMULATED,
        spec_name=spec.name,
        spec_json=expanded_json(spec),
        spec_hash=prereg_hash(registered(spec, workload_hash=workload)),
        workload_hash=workload,
        rules_version=RULES_VERSION,
        kit_version=__version__,
        created_utc=_CREATED,
        host={"gpu": "none"},
        spec_commit=_COMMIT,
        spec_committed_utc=_CREATED,
    )
