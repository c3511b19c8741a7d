"""A launch that its trace does not prove is void, whatever its answers look like, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.checks import CellState, Code
from kit.console import Progress
from kit.errors import ServerError
from kit.pipeline import Sitting, run_spec
from kit.plan import Selection
from kit.records import LaunchStatus, Phase, RunFacts
from kit.store import read_run
from kit.verdict import judge
from tests.pipeline.test_experiment import write_spec

# The fault of each arm's stand-ins, and what the launch says then.
FAULTS = {
    "k1": ("drop-trace", "no `speckit_trace`"),
    "k2": ("trace-silent", "recorded no iteration"),
    "k3": ("trace-stops=5", "the trace dropped"),
    "k4": ("trace-garbled=24", "not JSON"),
}
ARMS = [
    {"kind": "baseline", "name": "baseline"},
    *({"kind": "eagle3", "name": name, "num_steps": int(name[1]), "topk": 1} for name in FAULTS),
]
LOAD = {"concurrency": [1, 4], "waves": 2, "min_requests": 3, "warmup_requests": 1}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    folder = tmp_path_factory.mktemp("run")
    faults = tuple(f"{arm}:{fault}" for arm, (fault, _) in FAULTS.items())
    sitting = Sitting(out=folder / "run.duckdb", faults=faults)
    with pytest.MonkeyPatch.context() as patch:
        # On a busy host a pass made again would come before the line that cannot be read.
        patch.setattr("kit.pipeline.passes.disturbed", lambda repetition, *, noise_threshold: False)
        return read_run(run_spec(write_spec(folder, arms=ARMS, load=LOAD), sitting=sitting, watcher=Progress()))


@pytest.mark.parametrize("arm", FAULTS)
def test_a_launch_without_a_whole_trace_is_void_and_says_why(facts: RunFacts, arm: str) -> None:
    (launch,) = (launch for launch in facts.launches if launch.arm == arm)
    assert launch.status is LaunchStatus.VOID
    assert FAULTS[arm][1] in (launch.failure or "")
    assert launch.server_info is not None


def test_the_other_launches_are_measured_as_if_nothing_had_happened(facts: RunFacts) -> None:
    (sound,) = (launch for launch in facts.launches if launch.arm == "baseline")
    assert sound.status is LaunchStatus.COMPLETED
    timed = [rep.cell // 1000 for rep in facts.repetitions if rep.phase is Phase.TIMED]
    assert timed.count(sound.launch) == 2


def test_what_was_sent_before_the_trace_was_found_wanting_is_kept(facts: RunFacts) -> None:
    arm = {launch.launch: launch.arm for launch in facts.launches}
    stored: dict[str, list[Phase]] = {name: [] for name in FAULTS}
    for repetition in facts.repetitions:
        stored.setdefault(arm[repetition.cell // 1000], []).append(repetition.phase)
    # The first warm-up shows that nothing is recorded; a line that cannot be read comes after the first concurrency.
    assert (stored["k1"], stored["k2"]) == ([], [Phase.WARMUP])
    assert stored["k4"][:2] == [Phase.WARMUP, Phase.TIMED]


def test_what_a_void_launch_had_finished_supports_no_word(facts: RunFacts) -> None:
    doubts = judge(facts).doubts
    void = {launch.launch for launch in facts.launches if launch.status is LaunchStatus.VOID}
    assert {cell.state for cell in doubts.cells if cell.launch in void} == {CellState.INVALID}
    assert {doubt.launch for doubt in doubts.doubts if doubt.code is Code.LAUNCH_VOID} == void


def test_a_run_in_which_every_launch_is_void_is_an_error(tmp_path: Path) -> None:
    baseline = Selection(arms=("baseline",))
    sitting = Sitting(out=tmp_path / "run.duckdb", selection=baseline, faults=("drop-trace",))
    with pytest.raises(ServerError, match="no launch worked"):
        run_spec(write_spec(tmp_path), sitting=sitting, watcher=Progress())
