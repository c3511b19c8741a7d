"""Servers that somebody else runs are measured as they are, left as they are, and never judged as known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.checks import CellState, Code
from kit.console import Progress
from kit.errors import ServerError
from kit.pipeline import Sitting, run_spec
from kit.records import LaunchStatus, Origin
from kit.runtime import Endpoint, Order, ProcessServer
from kit.sglang import launch_flags
from kit.spec import load_spec
from kit.store import read_run
from kit.verdict import Heading, judge
from tests.pipeline.test_experiment import write_spec

ARMS = ("baseline", "k3")
ONE_LEVEL = {"concurrency": [2], "waves": 2, "min_requests": 4, "warmup_requests": 1}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, Endpoint]]:
    """A stand-in for each arm, started by nobody in particular and not traced."""
    spec = load_spec(write_spec(tmp_path))
    running = {}
    for arm in ARMS:
        folder = tmp_path / arm
        folder.mkdir()
        flags = launch_flags(spec, spec.arm(arm))
        order = Order(0, arm, spec.engine.sglang, flags, {}, folder, 60.0)
        command = ("env", "-u", "SPECKIT_TRACE_DIR", sys.executable, "-m", "kit.standin", "--world", "crossover")
        running[arm] = ProcessServer(command, order)
    try:
        yield {arm: server.start() for arm, server in running.items()}
    finally:
        for server in running.values():
            server.stop()


def attached(folder: Path, urls: dict[str, str]) -> Path:
    arms = [{"kind": "baseline", "name": "baseline"}, {"kind": "eagle3", "name": "k3", "num_steps": 3, "topk": 1}]
    return write_spec(folder, engine={"runtime": "attach", "world": None, "urls": urls}, arms=arms, load=ONE_LEVEL)


def test_every_arm_is_asked_at_its_url_and_no_cell_is_better_than_unknown(
    tmp_path: Path, servers: dict[str, Endpoint]
) -> None:
    spec = attached(tmp_path, {arm: endpoint.base_url for arm, endpoint in servers.items()})
    run_spec(spec, sitting=Sitting(out=tmp_path / "run.duckdb"), watcher=Progress())
    facts = read_run(tmp_path / "run.duckdb")
    assert facts.header.origin is Origin.ATTACHED
    assert {(one.arm, one.status, one.exit_code) for one in facts.launches} == {
        (arm, LaunchStatus.COMPLETED, None) for arm in ARMS
    }
    verdict = judge(facts)
    assert verdict.headings[0] is Heading.ATTACHED
    assert Code.PROVENANCE_UNKNOWN in {doubt.code for doubt in verdict.doubts.doubts}
    assert CellState.VALID not in {cell.state for cell in verdict.doubts.cells}


def test_a_url_where_nobody_answers_fails_its_arm_with_the_next_step(tmp_path: Path) -> None:
    spec = attached(tmp_path, dict.fromkeys(ARMS, "http://127.0.0.1:9"))
    with pytest.raises(ServerError, match="no launch worked"):
        run_spec(spec, sitting=Sitting(out=tmp_path / "run.duckdb"), watcher=Progress())
    failures = {one.failure for one in read_run(tmp_path / "run.duckdb").launches}
    assert "nothing answers at http://127.0.0.1:9: start the server of arm `baseline` there" in failures
