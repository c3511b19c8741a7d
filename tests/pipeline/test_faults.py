"""A whole run in which every arm is struck in its own way: the right outcome in the run file, and no row lost."""

from __future__ import annotations

import pytest

from kit.checks import CellState, Code
from kit.console import Progress
from kit.pipeline import Sitting, run_spec
from kit.records import LaunchStatus, Outcome, Phase, RunFacts
from kit.standin.faults import Strike
from kit.store import read_run
from kit.verdict import judge
from tests.pipeline.test_experiment import write_spec
from tests.standin.test_strikes import OUTCOMES

LOAD = {"concurrency": [2], "waves": 3, "min_requests": 6, "warmup_requests": 2, "request_timeout_s": 3.0}
STRIKES = {strike.value.replace("-", "_"): strike for strike in Strike}
FIRST_OF_THE_PASS = 3  # after two for warm-up

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    folder = tmp_path_factory.mktemp("faults")
    arms = [{"kind": "eagle3", "name": name, "num_steps": 3, "topk": 1} for name in (*STRIKES, "crashed")]
    source = write_spec(folder, arms=[{"kind": "baseline", "name": "baseline"}, *arms], load=LOAD)
    faults = (*(f"{name}:{strike}=2" for name, strike in STRIKES.items()), f"crashed:crash-after={FIRST_OF_THE_PASS}")
    run_spec(source, sitting=Sitting(out=folder / "run.duckdb", faults=faults), watcher=Progress())
    return read_run(folder / "run.duckdb")


def outcomes(facts: RunFacts, arm: str) -> list[Outcome]:
    """Those of the timed requests of an arm, passes that were made again left out, in the order of sending."""
    (launch,) = (launch for launch in facts.launches if launch.arm == arm)
    cells = {cell.cell for cell in facts.cells if cell.launch == launch.launch}
    timed = {rep.repetition for rep in facts.repetitions if rep.cell in cells and rep.phase is Phase.TIMED}
    return [request.outcome for request in facts.requests if request.repetition in timed]


@pytest.mark.parametrize("name", STRIKES)
def test_every_second_request_has_the_outcome_of_its_fault_and_every_request_its_row(
    facts: RunFacts, name: str
) -> None:
    expected = OUTCOMES[STRIKES[name]]
    assert sorted(outcomes(facts, name)) == sorted([expected, Outcome.OK] * 3)
    (cell,) = (one for one in judge(facts).doubts.cells if one.arm == name)
    assert cell.state is CellState.INVALID
    assert Code.FAILED_REQUESTS in cell.causes


def test_a_baseline_without_a_fault_is_whole(facts: RunFacts) -> None:
    assert outcomes(facts, "baseline") == [Outcome.OK] * 6


def test_a_crash_keeps_a_row_of_every_request_and_is_told_by_its_cause(facts: RunFacts) -> None:
    found = outcomes(facts, "crashed")
    assert len(found) == 6
    assert set(found) <= {Outcome.OK, Outcome.RESET, Outcome.CUT, Outcome.REFUSED}
    assert found.count(Outcome.OK) <= 1
    (launch,) = (launch for launch in facts.launches if launch.arm == "crashed")
    assert launch.status is LaunchStatus.FAILED
    assert "illegal memory access" in (launch.failure or "")
