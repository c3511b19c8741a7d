"""The verify kernel spins and health checks answer: found by the lack of tokens, not by a watchdog or a time limit."""

from __future__ import annotations

import pytest

from kit.console import Progress
from kit.diagnosis import Cause, diagnose
from kit.pipeline import Sitting, run_spec
from kit.plan import Selection
from kit.records import LaunchStatus, Outcome, Phase, RunFacts
from kit.store import read_run
from tests.field.inputs import text
from tests.pipeline.test_experiment import write_spec

LOG = text("F14", "server.log")
LOAD = {"concurrency": [4], "waves": 2, "min_requests": 8, "warmup_requests": 1, "silence_timeout_s": 1.0}


@pytest.mark.parametrize(
    "log", [LOG, LOG.replace("300 s", "120 s").replace("[2026", "[TP0 2026")], ids=["as is", "other"]
)
def test_the_log_says_hang_and_when_the_last_batch_was(log: str) -> None:
    found = diagnose(log)
    assert found.cause is Cause.WATCHDOG
    assert found.title.startswith("hang")
    assert "is not a low throughput" in found.advice


def test_the_log_gives_the_last_batch_before_the_hang() -> None:
    assert any("10:00:23" in note for note in diagnose(LOG).contributing)


@pytest.fixture(scope="module", params=["hang=1", "hang=4"], ids=["every request", "some requests"])
def hung(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    """A run whose first speculating arm stops sending while /health answers; a request may take ten minutes."""
    folder = tmp_path_factory.mktemp("hang")
    run_spec(
        write_spec(folder, load=LOAD | {"request_timeout_s": 600.0}),
        sitting=Sitting(
            out=folder / "run.duckdb",
            faults=(f"k3:{request.param}",),
            selection=Selection(arms=("baseline", "k3")),
        ),
        watcher=Progress(),
    )
    return read_run(folder / "run.duckdb")


def test_the_launch_is_stopped_and_named_a_hang(hung: RunFacts) -> None:
    (dead,) = (launch for launch in hung.launches if launch.arm == "k3")
    assert dead.status is LaunchStatus.FAILED
    assert (dead.failure or "").startswith("hang: nothing came for any request in flight for 1 s")
    cells = {cell.cell for cell in hung.cells if cell.launch == dead.launch}
    passes = {rep.repetition for rep in hung.repetitions if rep.cell in cells}
    outcomes = {one.outcome for one in hung.requests if one.repetition in passes}
    assert Outcome.STALLED in outcomes
    assert outcomes <= {Outcome.OK, Outcome.STALLED}


def test_the_other_arm_is_measured_on_a_server_of_its_own(hung: RunFacts) -> None:
    (other,) = (launch for launch in hung.launches if launch.arm == "baseline")
    assert other.status is LaunchStatus.COMPLETED
    cells = {cell.cell for cell in hung.cells if cell.launch == other.launch}
    timed = {rep.repetition for rep in hung.repetitions if rep.cell in cells and rep.phase is Phase.TIMED}
    assert [one.outcome for one in hung.requests if one.repetition in timed] == [Outcome.OK] * 8
