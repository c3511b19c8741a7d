"""Small synthetic runs whose truth is known: a server that iterates over a batch, and a draft that never depends on K.

Acceptance is one frozen bit a text position, so every depth decodes the same text and acceptance at equal positions is
the same by construction. What a test wants to be wrong it changes in the facts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
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
from kit.spec import (
    RULES_VERSION,
    AdaptiveArm,
    Arm,
    BaselineArm,
    Spec,
    canonical_json,
    expanded_json,
    prereg_hash,
    registered,
)

__all__ = ["COMMIT", "Cost", "build_run", "build_spec", "eagle3", "edit_launches", "edit_requests", "shared_run"]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MS = 1_000_000
LADDER = (1, 3)  # what the adaptive arm of a synthetic run alternates between, five iterations each
Cost = Callable[[int, int], float]
"""Seconds of one iteration at draft length K (0: no speculation) and batch size."""


def eagle3(depth: int, **fields: Any) -> dict[str, Any]:
    """A chain arm of the spec, named after its depth."""
    return {"kind": "eagle3", "name": f"eagle3_k{depth}", "num_steps": depth, "topk": 1, **fields}


def build_spec(**sections: Any) -> Spec:
    """A pinned spec of a baseline and two chains at two concurrencies in three blocks; sections are merged in."""
    data: dict[str, Any] = {
        "schema_version": 1,
        "name": "synthetic",
        "title": "A synthetic run",
        "question": "Is speculation faster?",
        "models": {
            "target": {"path": "target", "revision": COMMIT, "dtype": "bfloat16"},
            "draft": {"path": "draft", "revision": COMMIT},
        },
        "engine": {"runtime": "local"},
        "server": {"attention_backend": "triton", "context_length": 512, "max_running_requests": 8},
        "arms": [{"kind": "baseline", "name": "baseline"}, eagle3(1), eagle3(3)],
        "workload": {"files": ["prompts.jsonl"], "prompts": 48, "min_output_tokens": 24, "max_output_tokens": 40},
        "load": {"concurrency": [1, 4], "waves": 4, "min_requests": 8},
        "gate": {"bootstrap_draws": 200},
    }
    for name, change in sections.items():
        data[name] = data[name] | change if isinstance(change, Mapping) and name in data else change
    return Spec.model_validate_json(canonical_json(data))


def _cost(depth: int, batch: int) -> float:
    """Speculation costs more the larger the batch: it wins alone and loses in company."""
    tax = 0.0005 + 0.004 * (batch - 1) * (depth + 1) ** 0.5 if depth else 0.0
    return 0.010 + 0.0002 * batch + tax


def build_run(
    spec: Spec | None = None,
    *,
    cost: Cost = _cost,
    acceptance: float = 0.6,
    noise: float = 0.01,
    origin: Origin = Origin.MEASURED,
    host: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> RunFacts:
    """A whole run of `spec`. `noise` is the sd of log speed between launches, `acceptance` that of a text position."""
    spec = spec or build_spec()
    world = _World(spec, cost, acceptance, noise, np.random.default_rng(seed))
    for number, planned in enumerate(make_plan(spec).launches):
        world.serve(number, planned)
    return RunFacts(
        header=_header(spec, origin, host or {"gpu": "none"}),
        launches=tuple(world.launches),
        cells=tuple(world.cells),
        repetitions=tuple(world.repetitions),
        requests=tuple(world.requests),
        trace=world.trace(),
    )


@cache
def shared_run() -> RunFacts:
    """The default run, built once; facts are frozen, so tests may share it."""
    return build_run()


def _header(spec: Spec, origin: Origin, host: Mapping[str, Any]) -> RunHeader:
    return RunHeader(
        run_id="run-0001",
        origin=origin,
        spec_name=spec.name,
        spec_json=expanded_json(spec),
        spec_hash=prereg_hash(registered(spec, workload_hash="w" * 64)),
        workload_hash="w" * 64,
        rules_version=RULES_VERSION,
        kit_version=__version__,
        created_utc="2026-11-29T12:00:00+00:00",
        host=host,
        spec_commit=COMMIT,
        spec_committed_utc="2026-11-28T12:00:00+00:00",
    )


@dataclass
class _Live:
    """A request being decoded."""

    index: int
    prompt: int
    wanted: int
    sent_ns: int
    first_ns: int
    tokens: int = 1
    accepted: list[int] = field(default_factory=list)
    chunks: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class _World:
    """Everything written down while the servers run, one after the other on one clock."""

    spec: Spec
    cost: Cost
    acceptance: float
    noise: float
    rng: np.random.Generator
    clock_ns: int = 1_000_000_000
    launches: list[Launch] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    repetitions: list[Repetition] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    iterations: list[tuple[int, int, int, int, int, bool]] = field(default_factory=list)
    rows: list[tuple[int, str, int, int]] = field(default_factory=list)

    def serve(self, number: int, planned: PlannedLaunch) -> None:
        """One launch with every cell of it."""
        arm = self.spec.arm(planned.arm)
        pace = float(np.exp(self.noise * self.rng.standard_normal()))
        self.launches.append(_launch(self.spec, arm, number, planned))
        counter = _Counter()
        for position, one in enumerate(planned.cells):
            cell = len(self.cells)
            self.cells.append(Cell(cell, number, one.concurrency, position))
            began = self.clock_ns
            self._load(arm, number, cell, planned.block, one.concurrency, one.requests, pace, counter)
            self.repetitions.append(
                Repetition(
                    repetition=cell,
                    cell=cell,
                    phase=Phase.TIMED,
                    started_utc="2026-11-29T12:00:00+00:00",
                    started_ns=began,
                    ended_ns=self.clock_ns,
                    client={"cpu_share": 0.2, "loop_lag_s": 0.001, "received_bytes": 1},
                )
            )

    def _load(
        self,
        arm: Arm,
        launch: int,
        cell: int,
        block: int,
        concurrency: int,
        requests: int,
        pace: float,
        counter: _Counter,
    ) -> None:
        """A closed loop: a finished request is followed by the next at the same instant."""
        share = self.spec.workload.prompts // self.spec.design.blocks
        waiting = iter(range(requests))
        live: list[_Live] = []
        while True:
            live += [self._admit(i, block * share + i) for i in _take(waiting, concurrency - len(live))]
            if not live:
                return
            depth = _depth(arm, counter.iterations)
            self.clock_ns += round(self.cost(max(depth, 0), len(live)) * pace * 1e9)
            tokens = -1 if depth < 0 else depth + 1
            self.iterations.append((launch, counter.iterations, self.clock_ns, tokens, len(live), True))
            for one in live:
                self._step(one, depth, _rid(launch, cell, one.index))
            counter.iterations += 1
            for one in [one for one in live if one.tokens >= one.wanted]:
                live.remove(one)
                self.requests.append(self._record(one, arm, cell, _rid(launch, cell, one.index)))

    def _admit(self, index: int, prompt: int) -> _Live:
        low, high = self.spec.workload.min_output_tokens, self.spec.workload.max_output_tokens
        wanted = low + prompt * 7 % (high - low + 1)
        return _Live(index, prompt, wanted, self.clock_ns, self.clock_ns + MS, chunks=[(self.clock_ns + MS, 1)])

    def _step(self, one: _Live, depth: int, rid: str) -> None:
        """One round: the drafts that the text allows, and the bonus."""
        taken = -1
        if depth >= 0:
            run = _bits(one.prompt, self.acceptance)[one.tokens : one.tokens + depth]
            taken = int(np.argmin(np.append(run, False)))
            one.accepted.append(taken)
        self.rows.append((len(self.iterations) - 1, rid, one.tokens, taken))
        emitted = min(max(taken, 0) + 1, one.wanted - one.tokens)
        one.tokens += emitted
        one.chunks.append((self.clock_ns, emitted))

    def _record(self, one: _Live, arm: Arm, cell: int, rid: str) -> RequestRecord:
        speculative = not isinstance(arm, BaselineArm)
        return RequestRecord(
            repetition=cell,
            index=one.index,
            rid=rid,
            prompt=f"p{one.prompt:05d}",
            prompt_class=("chat", "code")[one.prompt % 2],
            max_new_tokens=one.wanted,
            sent_ns=one.sent_ns,
            ended_ns=self.clock_ns,
            outcome=Outcome.OK,
            status=200,
            first_token_ns=one.first_ns,
            finish_reason="length",
            prompt_tokens=10,
            completion_tokens=one.wanted,
            cached_tokens=0,
            verify_rounds=len(one.accepted) if speculative else None,
            correct_drafts=sum(one.accepted) if speculative else None,
            histogram=tuple(np.bincount(one.accepted).tolist()) if speculative else None,
            retractions=0,
            output_ids=1000 * one.prompt + np.arange(one.wanted),
            chunk_ns=np.array([at for at, _ in one.chunks], np.int64),
            chunk_tokens=np.array([tokens for _, tokens in one.chunks], np.int64),
        )

    def trace(self) -> Trace:
        """Everything the servers did, as columns."""
        columns = np.array(self.iterations, np.int64).reshape(-1, 6).T
        rids = tuple(dict.fromkeys(rid for _, rid, _, _ in self.rows))
        code = {rid: at for at, rid in enumerate(rids)}
        rows = np.array([(i, code[rid], before, taken) for i, rid, before, taken in self.rows], np.int64).reshape(-1, 4)
        return Trace(
            Iterations.of(
                launch=columns[0],
                number=columns[1],
                ready_ns=columns[2],
                draft_tokens=columns[3],
                batch_size=columns[4],
                cuda_graph=columns[5] != 0,
            ),
            Rounds(
                rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], np.zeros(len(rows), bool), np.zeros(len(rows), bool)
            ),
            rids,
        )


@dataclass
class _Counter:
    iterations: int = 0


def _take(waiting: Iterator[int], count: int) -> Iterator[int]:
    for _ in range(count):
        index = next(waiting, None)
        if index is not None:
            yield index


def _depth(arm: Arm, iteration: int) -> int:
    if isinstance(arm, BaselineArm):
        return -1
    return LADDER[iteration // 5 % 2] if isinstance(arm, AdaptiveArm) else arm.num_steps


def _rid(launch: int, cell: int, index: int) -> str:
    return f"L{launch:03d}-C{cell:03d}-{index:05d}"


def _bits(prompt: int, acceptance: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each position of a prompt's text can be drafted; prompts differ in how easy they are."""
    rng = np.random.default_rng(prompt)
    return rng.random(512) < acceptance + 0.2 * rng.uniform(-1, 1)


def _launch(spec: Spec, arm: Arm, number: int, planned: PlannedLaunch) -> Launch:
    info: dict[str, Any] = {
        "model_path": spec.models.target.path,
        "version": spec.engine.sglang,
        "max_running_requests": spec.server.max_running_requests,
        "speculative_algorithm": None,
        "max_total_num_tokens": 100_000,
    }
    if not isinstance(arm, BaselineArm):
        info |= {
            "speculative_algorithm": "EAGLE3",
            "speculative_eagle_topk": 1,
            "speculative_num_steps": arm.num_steps,
            "speculative_adaptive": isinstance(arm, AdaptiveArm),
        }
    return Launch(
        launch=number,
        block=planned.block,
        position=planned.position,
        arm=arm.name,
        role=planned.role,
        command=("sglang", "serve"),
        started_utc="2026-11-29T12:00:00+00:00",
        status=LaunchStatus.COMPLETED,
        startup_s=1.0,
        server_info=info,
        log="ready",
    )


def edit_requests(
    facts: RunFacts,
    change: Callable[[RequestRecord], RequestRecord],
    *,
    arm: str | None = None,
    first: int | None = None,
) -> RunFacts:
    """`facts` with the requests of `arm` (the first so many of them) changed."""
    launches = {launch.launch for launch in facts.launches if arm in (None, launch.arm)}
    cells = {cell.cell for cell in facts.cells if cell.launch in launches}
    chosen = {rep.repetition for rep in facts.repetitions if rep.cell in cells}
    mine = [at for at, request in enumerate(facts.requests) if request.repetition in chosen][:first]
    requests = list(facts.requests)
    for at in mine:
        requests[at] = change(requests[at])
    return replace(facts, requests=tuple(requests))


def edit_launches(facts: RunFacts, change: Callable[[Launch], Launch], *, arm: str | None = None) -> RunFacts:
    """`facts` with the launches of `arm` changed."""
    return replace(
        facts,
        launches=tuple(change(launch) if arm in (None, launch.arm) else launch for launch in facts.launches),
    )
