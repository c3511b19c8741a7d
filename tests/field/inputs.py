"""Inputs of the field cases, and runs built around them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from kit.analysis import CellResult, Distribution, Speed, compare_speed
from kit.diagnosis import diagnose
from kit.errors import SpecError
from kit.load import Exchange, Prompt, to_record
from kit.records import LaunchStatus, RequestRecord, Role, RunFacts, Trace
from kit.spec import BaselineArm, Spec, canonical_json, parse_spec
from kit.stats import Estimate
from kit.verdict import SpeedSection
from kit.verdict.speed import speed_section
from tests.builders import build_run, build_spec, edit_launches, shared_run

__all__ = [
    "Pass",
    "answered_run",
    "cells_of",
    "failed_launches",
    "judged_speed",
    "objects",
    "record_of",
    "refusal",
    "rows",
    "spec_file",
    "text",
]

DATA = Path(__file__).parent.parent / "data" / "field"
Meta = Mapping[str, Any]


def text(case: str, name: str) -> str:
    """One input file as it is."""
    return (DATA / case / name).read_text(encoding="utf-8")


def objects(case: str, name: str) -> Any:
    """One JSON input."""
    return json.loads(text(case, name))


def rows(case: str, name: str) -> list[dict[str, Any]]:
    """One input of JSON lines."""
    return [json.loads(line) for line in text(case, name).splitlines()]


def refusal(**sections: Any) -> str:
    """Why a spec with these sections is refused."""
    data = build_spec().model_dump(mode="json") | sections
    with pytest.raises(SpecError) as refused:
        parse_spec(canonical_json(data), name="spec.yaml")
    return str(refused.value)


def spec_file(folder: Path, **sections: Any) -> Path:
    """A spec with these sections and its prompts, on disk; JSON is YAML."""
    prompts = [{"id": f"p{at}", "class": "chat", "text": f"Tell me about {at}."} for at in range(48)]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    path = folder / "spec.yaml"
    path.write_text(canonical_json(build_spec().model_dump(mode="json") | sections), encoding="utf-8")
    return path


def record_of(meta: Meta, *, index: int = 0, repetition: int = 0, speculative: bool = True) -> RequestRecord:
    """The record of an answer that ends with `meta`, as the load generator makes it from the bytes of a stream."""
    tokens = meta["completion_tokens"]
    final = {"finish_reason": {"type": "length", "length": tokens}, "prompt_tokens": 9, "cached_tokens": 0, **meta}
    event = {"text": "", "output_ids": list(range(tokens)), "meta_info": final | {"num_retractions": 0}}
    body = b"data: " + orjson.dumps(event) + b"\n\ndata: [DONE]\n\n"
    exchange = Exchange(f"r{index}", sent_ns=1, ended_ns=9, status=200, pieces=[(5, body)])
    prompt = Prompt(f"p{index}", "chat", "Go on.", tokens)
    return to_record(exchange, prompt, repetition=repetition, index=index, speculative=speculative)


def answered_run(answers: Mapping[str, Sequence[Meta]], arms: Sequence[Mapping[str, Any]]) -> RunFacts:
    """An untraced run of one block at concurrency 1, in which each arm gave these answers."""
    spec = build_spec(arms=list(arms), load={"concurrency": [1]}, design={"blocks": 1})
    facts = build_run(spec)
    repetition = {launch.arm: launch.launch for launch in facts.launches}
    requests = [
        record_of(
            meta,
            index=at,
            repetition=repetition[name],
            speculative=not isinstance(spec.arm(name), BaselineArm),
        )
        for name, metas in answers.items()
        for at, meta in enumerate(metas)
    ]
    return replace(facts, requests=tuple(requests), trace=Trace.empty())


def failed_launches(facts: RunFacts, *, arm: str, log: str, exit_code: int) -> RunFacts:
    """`facts` in which no server of `arm` ever came up."""
    found = diagnose(log, exit_code=exit_code)
    launches = {launch.launch for launch in facts.launches if launch.arm == arm}
    cells = {cell.cell for cell in facts.cells if cell.launch in launches}
    iterations = np.isin(facts.trace.iterations.launch, list(launches))
    if iterations.any():
        facts = replace(facts, trace=Trace.empty())
    facts = replace(
        facts,
        cells=tuple(cell for cell in facts.cells if cell.cell not in cells),
        repetitions=tuple(rep for rep in facts.repetitions if rep.cell not in cells),
        requests=tuple(request for request in facts.requests if request.repetition not in cells),
    )
    return edit_launches(
        facts,
        lambda one: replace(
            one,
            status=LaunchStatus.FAILED,
            server_info=None,
            startup_s=None,
            exit_code=exit_code,
            failure=f"{found.title}; {found.advice}",
            log=log,
        ),
        arm=arm,
    )


@dataclass(frozen=True)
class Pass:
    """One measured cell of a foreign table."""

    arm: str
    concurrency: int
    block: int
    tok_s: float
    role: Role = Role.MEASURE


def cells_of(passes: Sequence[Pass]) -> tuple[CellResult, ...]:
    """The cells that a run with these throughputs would have, one launch each block, arm and role."""
    launches = list(dict.fromkeys((one.block, one.arm, one.role) for one in passes))
    none = Distribution(0, reason="the table has no times")
    cells = []
    for number, one in enumerate(passes):
        speed = Estimate.bare(one.tok_s, n=1, method="table", reason="one launch")
        cells.append(
            CellResult(
                cell=number,
                launch=launches.index((one.block, one.arm, one.role)),
                block=one.block,
                arm=one.arm,
                role=one.role,
                concurrency=one.concurrency,
                requests=8,
                waves=8.0,
                outcomes=(),
                failed=0,
                output_tokens=1000,
                throughput_window=speed,
                throughput_full_run=speed,
                window=None,
                achieved_concurrency=speed,
                ttft_s=none,
                tpot_s=none,
                e2e_latency_s=none,
                chunk_gap_s=none,
            )
        )
    return tuple(cells)


def judged_speed(spec: Spec, passes: Sequence[Pass]) -> tuple[Speed, SpeedSection]:
    """What the kit computes and says about these throughputs, all of them valid."""
    cells = cells_of(passes)
    speed = compare_speed(spec, cells, valid={cell.cell for cell in cells})
    return speed, speed_section(shared_run(), spec, cells=cells, speed=speed, states=())
