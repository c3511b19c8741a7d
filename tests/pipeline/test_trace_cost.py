"""One launch is measured with its trace on and off in turns, and the report says what the trace costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kit.console import Progress
from kit.pipeline import Sitting, preview, published, run_spec
from kit.plan import TOGGLED, Selection
from kit.records import LaunchStatus, Phase, Role, RunFacts
from kit.store import read_run
from tests.pipeline.test_experiment import write_spec


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    load = {"concurrency": [2], "waves": 2, "min_requests": 4, "warmup_requests": 2}
    source = write_spec(folder, load=load, design={"blocks": 1, "trace_cost": "k3"})
    sitting = Sitting(out=folder / "run.duckdb", selection=Selection(arms=("baseline", "k3")))
    return run_spec(source, sitting=sitting, watcher=Progress())


@pytest.fixture(scope="module")
def facts(run_file: Path) -> RunFacts:
    return read_run(run_file)


def test_the_arm_is_launched_once_more_in_the_end_and_its_passes_take_turns(facts: RunFacts) -> None:
    last = facts.launches[-1]
    assert (last.role, last.arm, last.status) == (Role.TRACE_COST, "k3", LaunchStatus.COMPLETED)
    assert [launch.role for launch in facts.launches[:-1]] == [Role.MEASURE] * 2
    phases = [rep.phase for rep in facts.repetitions if rep.cell // 1000 == last.launch]
    assert phases == [Phase.WARMUP, *TOGGLED]


def test_the_trace_shows_the_passes_that_it_was_on_for_and_no_other(facts: RunFacts) -> None:
    phase = {rep.repetition: rep.phase for rep in facts.repetitions}
    seen = set(facts.trace.rids)
    traced = [one.rid in seen for one in facts.requests if phase[one.repetition] is not Phase.UNTRACED]
    untraced = [one.rid in seen for one in facts.requests if phase[one.repetition] is Phase.UNTRACED]
    assert all(traced) and not any(untraced)
    assert len(untraced) == 4 * 4


def test_pausing_loses_nothing(facts: RunFacts) -> None:
    numbers = facts.trace.iterations.number[facts.trace.iterations.launch == facts.launches[-1].launch]
    assert (np.diff(numbers) == 1).all()
    assert facts.trace.lost == 0


def test_the_report_states_the_cost_with_its_interval(run_file: Path, tmp_path: Path) -> None:
    verdict, paths = published(run_file, out=tmp_path)
    (cost,) = verdict.what_ran.trace_costs
    assert cost.ratio.n == 4
    assert cost.ratio.interval is not None
    page = paths.page.read_text(encoding="utf-8")
    assert "**Throughput with the trace**" in page
    assert "| `k3` |" in page


def test_a_selection_without_the_arm_leaves_the_launch_out(tmp_path: Path) -> None:
    source = write_spec(tmp_path, design={"blocks": 1, "trace_cost": "k3"})
    plan = preview(source, Selection(arms=("baseline",))).plan
    assert Role.TRACE_COST not in {launch.role for launch in plan.launches}
