"""Whole verdicts, reviewed in the diff: a simulated run of every preset, an invalid run, an interrupted one.

The recorded capture has its own file. Simulated runs are made in virtual time, so they are the same on every host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from kit.records import Iterations, Launch, LaunchStatus, Outcome, RequestRecord, Rounds, RunFacts, Trace
from kit.report import render
from kit.selftest.virtual import virtual_run
from kit.spec import Spec
from kit.standin.world import load_world, presets
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3, edit_requests
from tests.report.golden import golden


def preset_spec(name: str) -> Spec:
    """A small run of a preset: two chains, alone and in company."""
    return build_spec(
        name=f"golden_{name.replace('-', '_')}",
        title=f"A simulated run of the preset {name}",
        question="What does the kit say about a world whose truth is known?",
        engine={"runtime": "standin", "world": name},
        arms=[{"kind": "baseline", "name": "baseline"}, eagle3(1, name="k1"), eagle3(3, name="k3")],
        workload={"files": ["virtual.jsonl"], "prompts": 96, "min_output_tokens": 16, "max_output_tokens": 32},
        load={"concurrency": [1, 8], "waves": 4, "min_requests": 16},
        server={"attention_backend": "triton", "context_length": 512, "max_running_requests": 64},
    )


@pytest.mark.parametrize("name", presets())
def test_the_verdict_on_every_preset_is_the_reviewed_one(name: str) -> None:
    document = render(judge(of_any_version(virtual_run(preset_spec(name), load_world(name), seed=1))))
    assert document.startswith("**SIMULATED**: ")
    assert document == golden(f"standin-{name}.md", actual=document)


def invalid() -> RunFacts:
    """Every request of one arm failed at one concurrency, and the other arm served from a warm cache."""

    nothing = np.empty(0, np.int64)

    def failed(one: RequestRecord) -> RequestRecord:
        return replace(one, outcome=Outcome.HTTP_ERROR, status=500, error="Internal Server Error", output_ids=nothing)

    facts = edit_requests(build_run(), failed, arm="eagle3_k3")
    return edit_requests(facts, lambda one: replace(one, cached_tokens=9), arm="eagle3_k1")


def interrupted() -> RunFacts:
    """Stopped in the second block: what was finished is kept, the launch in flight is not."""
    facts = build_run(build_spec(design={"closing_baseline": True}))
    last = 4

    def status(launch: Launch) -> Launch:
        if launch.launch < last:
            return launch
        return replace(launch, status=LaunchStatus.INTERRUPTED, startup_s=None, failure="stopped by the user")

    cells = tuple(cell for cell in facts.cells if cell.launch < last)
    kept = {cell.cell for cell in cells}
    return replace(
        facts,
        launches=tuple(status(launch) for launch in facts.launches if launch.launch <= last),
        cells=cells,
        repetitions=tuple(one for one in facts.repetitions if one.cell in kept),
        requests=tuple(one for one in facts.requests if one.repetition in kept),
        trace=_before(facts.trace, last),
    )


def _before(trace: Trace, launch: int) -> Trace:
    """The trace of the launches before that one; iterations are in order of launch."""
    kept = int((trace.iterations.launch < launch).sum())
    rows = trace.rounds.iteration < kept
    iterations = Iterations(**{one.name: getattr(trace.iterations, one.name)[:kept] for one in fields(Iterations)})
    rounds = Rounds(**{one.name: getattr(trace.rounds, one.name)[rows] for one in fields(Rounds)})
    return replace(trace, iterations=iterations, rounds=rounds)


def of_any_version(facts: RunFacts) -> RunFacts:
    """A new version of the kit is no other verdict."""
    return replace(facts, header=replace(facts.header, kit_version="of the day"))


@pytest.mark.parametrize(("name", "made"), [("invalid", invalid), ("interrupted", interrupted)])
def test_the_verdict_on_a_broken_run_is_the_reviewed_one(name: str, made: Callable[[], RunFacts]) -> None:
    document = render(judge(of_any_version(made())))
    assert document == golden(f"{name}.md", actual=document)
