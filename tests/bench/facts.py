"""Runs of any size, made of columns: what a measured run of so many requests would have stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kit.records import (
    Cell,
    Ints,
    Iterations,
    Launch,
    LaunchStatus,
    Outcome,
    Phase,
    Repetition,
    RequestRecord,
    Role,
    Rounds,
    RunFacts,
    Trace,
)
from kit.spec import Spec, expanded_json, prereg_hash, registered
from tests.builders import build_spec, eagle3, shared_run

__all__ = ["BLOCKS", "LEVELS", "run_of"]

ARMS = ("baseline", "eagle3_k3", "eagle3_k7", "adaptive")
DEPTHS = {"baseline": -1, "eagle3_k3": 3, "eagle3_k7": 7, "adaptive": 3}
LEVELS, BLOCKS = (8, 32), 3
LONGEST = {"eagle3_k3": 3, "eagle3_k7": 7, "adaptive": 7}
"""K of every other iteration; the adaptive arm changes it."""
ROUNDS = 16
"""Rounds of a speculating request; without speculation one a token but the first."""
SHALLOWEST = 3
"""Drafts that a round accepts at most, whatever its K."""
_MS = 1_000_000
_CELL_NS = 10**13


def _spec() -> Spec:
    arms = [
        {"kind": "baseline", "name": "baseline"},
        eagle3(3),
        eagle3(7),
        {"kind": "adaptive", "name": "adaptive", "num_steps": 7},
    ]
    return build_spec(
        arms=arms,
        load={"concurrency": list(LEVELS)},
        server={"max_running_requests": 32},
        gate={"bootstrap_draws": 2000},
    )


def run_of(requests: int) -> RunFacts:
    """A run of about that many requests, about 20 rounds each, over four arms, three blocks and two levels."""
    spec = _spec()
    known = shared_run().header
    registered_hash = prereg_hash(registered(spec, workload_hash=known.workload_hash))
    header = replace(known, spec_json=expanded_json(spec), spec_hash=registered_hash)
    each = max(LEVELS[-1] * 4, requests // (len(ARMS) * BLOCKS * len(LEVELS)))
    launches: list[Launch] = []
    cells: list[Cell] = []
    repetitions: list[Repetition] = []
    records: list[RequestRecord] = []
    traces: list[tuple[Iterations, Rounds, tuple[str, ...]]] = []
    for block in range(BLOCKS):
        for arm in ARMS:
            launch = len(launches)
            launches.append(_launch(spec, arm, launch, block))
            for position, level in enumerate(LEVELS):
                cell = len(cells)
                cells.append(Cell(cell, launch, level, position))
                mine, trace, ended = _served(arm, cell, launch, level, each, block * each)
                records += mine
                traces.append(trace)
                client = {"cpu_share": 0.2, "loop_lag_s": 0.001, "received_bytes": 1}
                repetitions.append(
                    Repetition(cell, cell, Phase.TIMED, "2026-11-29T12:00:00+00:00", cell * _CELL_NS, ended, client)
                )
    return RunFacts(header, tuple(launches), tuple(cells), tuple(repetitions), tuple(records), _joined(traces))


def _launch(spec: Spec, arm: str, launch: int, block: int) -> Launch:
    info: dict[str, Any] = {
        "model_path": spec.models.target.path,
        "version": spec.engine.sglang,
        "max_running_requests": spec.server.max_running_requests,
        "speculative_algorithm": None,
    }
    if arm != "baseline":
        steps = spec.arm(arm).num_steps  # type: ignore[union-attr]
        info |= {
            "speculative_algorithm": "EAGLE3",
            "speculative_eagle_topk": 1,
            "speculative_num_steps": steps,
            "speculative_adaptive": arm == "adaptive",
        }
    started = "2026-11-29T12:00:00+00:00"
    return Launch(launch, block, 0, arm, Role.MEASURE, (), started, LaunchStatus.COMPLETED, server_info=info)


def _served(
    arm: str, cell: int, launch: int, level: int, requests: int, first: int
) -> tuple[list[RequestRecord], tuple[Iterations, Rounds, tuple[str, ...]], int]:
    """Waves of `level` requests in lock-step: their records, their part of the trace, and when the last one ended.

    Prompts accept the same drafts in every arm, so that all outputs are equal, as they mostly are.
    """
    depth = DEPTHS[arm]
    rng = np.random.default_rng(first)
    ease = rng.uniform(0.3, 0.7, requests)[:, None]
    accepted = np.minimum(rng.geometric(1 - ease, (requests, ROUNDS)) - 1, SHALLOWEST)
    completion = 1 + (accepted + 1).sum(axis=1)
    if depth < 0:  # one token a round, as many rounds as the longest answer has
        accepted = np.zeros((requests, int(completion.max()) - 1), np.int64)
    width = accepted.shape[1]
    before = 1 + np.cumsum(accepted + 1, axis=1) - (accepted + 1)
    wave = np.arange(requests) // level
    began = cell * _CELL_NS
    ready = began + (wave[:, None] * width + np.arange(width) + 1) * 10 * _MS
    live = before < completion[:, None]
    rids = tuple(f"L{launch:03d}-C{cell:03d}-{index:06d}" for index in range(requests))
    records = [
        _record(i, arm, cell, rids[i], first + i, accepted[i][live[i]], int(completion[i]), ready[i][live[i]])
        for i in range(requests)
    ]
    count = (int(wave[-1]) + 1) * width
    iterations = Iterations.of(
        launch=np.full(count, launch),
        number=np.arange(count),
        ready_ns=began + np.arange(1, count + 1) * 10 * _MS,
        draft_tokens=np.full(count, -1) if depth < 0 else 1 + np.where(np.arange(count) % 2, depth, LONGEST[arm]),
        batch_size=np.full(count, level),
        cuda_graph=np.ones(count, bool),
    )
    iteration = (wave[:, None] * width + np.arange(width))[live]
    order = np.argsort(iteration, kind="stable")
    owner = np.broadcast_to(np.arange(requests)[:, None], live.shape)[live]
    taken = np.where(depth < 0, -1, accepted)[live]
    never = np.zeros(len(order), bool)
    rounds = Rounds(iteration[order], owner[order], before[live][order], taken[order], never, never)
    return records, (iterations, rounds, rids), int(ready.max()) + _MS


def _record(
    index: int, arm: str, cell: int, rid: str, prompt: int, accepted: Ints, completion: int, ready: Ints
) -> RequestRecord:
    speculative = arm != "baseline"
    return RequestRecord(
        repetition=cell,
        index=index,
        rid=rid,
        prompt=f"p{prompt:06d}",
        prompt_class=("chat", "code")[prompt % 2],
        max_new_tokens=completion,
        sent_ns=int(ready[0]) - 10 * _MS,
        ended_ns=int(ready[-1]),
        outcome=Outcome.OK,
        status=200,
        first_token_ns=int(ready[0]) - 9 * _MS,
        finish_reason="length",
        prompt_tokens=10,
        completion_tokens=completion,
        cached_tokens=0,
        verify_rounds=len(accepted) if speculative else None,
        correct_drafts=int(accepted.sum()) if speculative else None,
        histogram=tuple(np.bincount(accepted).tolist()) if speculative else None,
        retractions=0,
        output_ids=prompt * 7 + np.arange(completion),
        chunk_ns=np.append(ready[0] - 9 * _MS, ready),
        chunk_tokens=np.append(1, accepted + 1),
    )


def _joined(parts: list[tuple[Iterations, Rounds, tuple[str, ...]]]) -> Trace:
    """The parts one after the other, with their indices moved; iterations are numbered through each launch."""
    iterations = Iterations(*(np.concatenate([getattr(p[0], n) for p in parts]) for n in Iterations.__slots__))
    begins = np.searchsorted(iterations.launch, iterations.launch)
    first_iteration = np.cumsum([0] + [len(p[0]) for p in parts])
    first_rid = np.cumsum([0] + [len(p[2]) for p in parts])
    moved = [
        replace(p[1], iteration=p[1].iteration + at, rid=p[1].rid + rid)
        for p, at, rid in zip(parts, first_iteration, first_rid, strict=False)
    ]
    rounds = Rounds(*(np.concatenate([getattr(p, n) for p in moved]) for n in Rounds.__slots__))
    numbered = replace(iterations, number=np.arange(len(iterations)) - begins)
    return Trace(numbered, rounds, tuple(rid for p in parts for rid in p[2]))
