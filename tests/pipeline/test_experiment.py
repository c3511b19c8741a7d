"""Measuring the stand-in end to end: what was sent, served and traced agrees, and nothing is lost or left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kit.analysis import Pairing, analyse, failed_answers
from kit.checks import Code, Doubt, Severity, check_run
from kit.console import Progress
from kit.errors import ServerError, SpecError
from kit.pipeline import Sitting, run_spec
from kit.plan import Selection
from kit.records import LaunchStatus, Origin, Outcome, Phase, RunFacts
from kit.stats import LosslessWord
from kit.store import add_launch, read_run
from kit.verdict import judge
from tests.specs import BASE

LOAD = {"concurrency": [1, 4], "waves": 2, "min_requests": 3, "warmup_requests": 1}
SHORT = {"prompts": 60, "min_output_tokens": 6, "max_output_tokens": 12}


def write_spec(folder: Path, **sections: Any) -> Path:
    """The tiny spec with its prompts in `folder`."""
    data: dict[str, Any] = json.loads(json.dumps(BASE))
    data |= {"load": LOAD, "design": {"blocks": 1}, "workload": data["workload"] | SHORT}
    for name, value in sections.items():
        data[name] = data.get(name, {}) | value if isinstance(value, dict) else value
    prompts = [{"id": f"p{at:03d}", "class": "chat", "text": f"Tell me about number {at}."} for at in range(80)]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts)))
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def only_baseline(folder: Path) -> Sitting:
    return Sitting(out=folder / "run.duckdb", selection=Selection(arms=("baseline",)))


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    folder = tmp_path_factory.mktemp("run")
    run_spec(write_spec(folder), sitting=Sitting(out=folder / "run.duckdb"), watcher=Progress())
    assert not (folder / "run.work").exists()
    return read_run(folder / "run.duckdb")


def test_every_launch_of_the_plan_ran_and_kept_its_log(facts: RunFacts) -> None:
    assert sorted(launch.arm for launch in facts.launches) == ["adaptive", "baseline", "k3"]
    for launch in facts.launches:
        assert (launch.status, launch.failure) == (LaunchStatus.COMPLETED, None)
        assert "ready to roll" in launch.log
        assert launch.server_info is not None


def test_every_cell_was_warmed_up_and_timed_with_the_planned_requests(facts: RunFacts) -> None:
    concurrency = {cell.cell: cell.concurrency for cell in facts.cells}
    sent = Counter(request.repetition for request in facts.requests)
    kept = [r for r in facts.repetitions if r.phase is not Phase.DISTURBED]
    found = Counter((concurrency[r.cell], r.phase, sent[r.repetition]) for r in kept)
    assert found == {(1, Phase.WARMUP, 1): 3, (1, Phase.TIMED, 3): 3, (4, Phase.WARMUP, 4): 3, (4, Phase.TIMED, 8): 3}


def test_every_request_is_whole(facts: RunFacts) -> None:
    for request in facts.requests:
        assert (request.outcome, request.status, request.finish_reason) == (Outcome.OK, 200, "length")
        assert request.completion_tokens == request.max_new_tokens == len(request.output_ids)
        assert int(request.chunk_tokens.sum()) == request.completion_tokens
        assert request.sent_ns < (request.first_token_ns or 0) <= request.ended_ns


def test_all_arms_got_the_same_prompts_and_gave_the_same_tokens(facts: RunFacts) -> None:
    outputs: dict[str, set[tuple[int, ...]]] = {}
    for request in facts.requests:
        outputs.setdefault(request.prompt, set()).add(tuple(request.output_ids))
    assert all(len(texts) == 1 for texts in outputs.values())


def test_the_trace_tells_the_same_story_as_the_responses(facts: RunFacts) -> None:
    rounds, rids = facts.trace.rounds, np.array(facts.trace.rids)
    assert facts.trace.lost == 0
    for request in facts.requests:
        mine = (rids[rounds.rid] == request.rid) & ~rounds.ghost
        accepted = rounds.accepted[mine]
        if request.verify_rounds is None:
            assert set(accepted.tolist()) <= {-1}
        else:
            assert len(accepted) == request.verify_rounds == sum(request.histogram or ())
            assert np.bincount(accepted).tolist() == list(request.histogram or ())


def test_the_header_names_the_experiment_and_the_truth(facts: RunFacts) -> None:
    header = facts.header
    assert (header.origin, header.spec_name, header.declarations) == (Origin.SIMULATED, "tiny", ())
    assert set(header.host["simulated_truth"]["crossover"]) == {"k3"}
    assert header.created_utc <= min(launch.started_utc for launch in facts.launches)


TOO_SHALLOW = [{"kind": "baseline", "name": "baseline"}, {"kind": "adaptive", "name": "adaptive", "num_steps": 3}]


def test_a_launch_that_fails_is_stored_with_its_cause_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["kit.pipeline.preview"], "_check_contract", lambda *arguments: None)
    source = write_spec(tmp_path, arms=TOO_SHALLOW, load={"concurrency": [1], "waves": 1, "min_requests": 1})
    run_spec(source, sitting=Sitting(out=tmp_path / "run.duckdb"), watcher=Progress())
    launches = {launch.arm: launch for launch in read_run(tmp_path / "run.duckdb").launches}
    assert launches["baseline"].status is LaunchStatus.COMPLETED
    assert (launches["adaptive"].status, launches["adaptive"].exit_code) == (LaunchStatus.FAILED, -9)
    assert "logits buffer" in launches["adaptive"].log


def test_a_run_without_one_working_launch_is_an_error(tmp_path: Path) -> None:
    source = write_spec(tmp_path, engine={"startup_timeout_s": 0.01})
    with pytest.raises(ServerError, match="no launch worked"):
        run_spec(source, sitting=only_baseline(tmp_path), watcher=Progress())
    assert [launch.status for launch in read_run(tmp_path / "run.duckdb").launches] == [LaunchStatus.FAILED]


def test_a_server_that_is_killed_while_it_serves_costs_its_launch_alone(tmp_path: Path) -> None:
    class Killer(Progress):
        """Kills the first server that answers a request, as the kernel would."""

        killed = 0

        def advance(self) -> None:
            if not self.killed:
                (self.killed,) = _children(os.getpid())
                os.kill(self.killed, signal.SIGKILL)

    killer = Killer()
    run_spec(write_spec(tmp_path), sitting=Sitting(out=tmp_path / "run.duckdb"), watcher=killer)
    facts = read_run(tmp_path / "run.duckdb")
    first, *others = facts.launches
    assert (first.status, first.exit_code) == (LaunchStatus.FAILED, -signal.SIGKILL)
    assert "killed from outside (SIGKILL)" in (first.failure or "")
    assert first.server_info is not None and "ready to roll" in first.log
    assert [launch.status for launch in others] == [LaunchStatus.COMPLETED] * 2
    cells = {cell.cell for cell in facts.cells if cell.launch == first.launch}
    (cut,) = (repetition for repetition in facts.repetitions if repetition.cell in cells)
    assert cut.phase is Phase.WARMUP  # the pass in flight is kept


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_keeps_what_was_finished_and_leaves_no_server(asked: signal.Signals, tmp_path: Path) -> None:
    source = write_spec(tmp_path, load={"concurrency": [1, 4], "waves": 15, "min_requests": 15, "warmup_requests": 1})
    out = tmp_path / "run.duckdb"
    # Whoever runs the tests in the background, or with nohup, ignores signals for them.
    command = [
        "env",
        "--default-signal",
        sys.executable,
        "-m",
        "kit",
        "run",
        str(source),
        "--out",
        str(out),
        "--reports",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as kit:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (repetitions := _repetitions(out)):
            time.sleep(0.2)
        servers = _children(kit.pid)
        kit.send_signal(asked)
        message = kit.communicate(timeout=120)[1]
    assert kit.returncode == 130
    assert "finished repetitions are in" in message
    assert "Traceback" not in message
    assert repetitions and servers
    assert not any(Path(f"/proc/{pid}").exists() for pid in servers)
    stored = read_run(out)
    assert len(stored.repetitions) >= repetitions
    assert stored.launches[-1].status is LaunchStatus.INTERRUPTED
    assert stored.launches[-1].failure == "stopped by the user"
    assert not (tmp_path / "run.work").exists()


def _repetitions(path: Path) -> int:
    try:
        return len(read_run(path).repetitions)
    except Exception:
        return 0


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def test_a_pass_that_the_host_disturbed_is_kept_and_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.pipeline.passes.disturbed", lambda repetition, *, noise_threshold: True)
    source = write_spec(tmp_path, load={"concurrency": [1], "waves": 1, "min_requests": 2})
    run_spec(source, sitting=only_baseline(tmp_path), watcher=Progress())
    facts = read_run(tmp_path / "run.duckdb")
    assert [r.phase for r in facts.repetitions] == [Phase.WARMUP, Phase.DISTURBED, Phase.DISTURBED, Phase.TIMED]
    assert len({request.rid for request in facts.requests}) == len(facts.requests)


ONE_LEVEL = {"concurrency": [4], "waves": 2, "min_requests": 8, "warmup_requests": 1}


def run_with(folder: Path, *faults: str) -> tuple[RunFacts, tuple[Doubt, ...]]:
    """A tiny run of two arms with faults asked for, and the doubts it raises."""
    out, source = folder / "run.duckdb", write_spec(folder, load=ONE_LEVEL)
    run_spec(
        source,
        sitting=Sitting(out=out, faults=faults, selection=Selection(arms=("baseline", "k3"))),
        watcher=Progress(),
    )
    facts = read_run(out)
    return facts, check_run(facts, analyse(facts))


@pytest.mark.parametrize("fault, outcome", [("http-500-empty=4", "http_error"), ("cut-body=4", "cut")])
def test_an_unexplained_answer_is_joined_to_the_traceback_in_the_living_servers_log(
    tmp_path: Path, fault: str, outcome: str
) -> None:
    facts, doubts = run_with(tmp_path, f"k3:{fault}")
    assert all(launch.status is LaunchStatus.COMPLETED for launch in facts.launches)
    assert f"FAULT ASKED FOR: k3:{fault}" in facts.header.declarations
    logs = {launch.launch: launch.log.split("\n") for launch in facts.launches}
    failed = failed_answers(facts)
    assert {facts.launches[one.launch].arm for one in failed} == {"k3"}
    for one in failed:
        assert one.request.outcome == outcome
        assert one.why is not None and one.why.line is not None
        assert "as asked for" in logs[one.launch][one.why.line - 1]
    (doubt,) = (doubt for doubt in doubts if doubt.code is Code.FAILED_REQUESTS)
    assert (doubt.arm, doubt.severity) == ("k3", Severity.INVALID)
    assert "2 of 8 requests failed" in doubt.message
    assert "; 2 of them: a request failed, the server lives: " in doubt.message


def test_a_server_that_dies_in_a_pass_keeps_the_pass_and_names_the_cause(tmp_path: Path) -> None:
    facts, doubts = run_with(tmp_path, "k3:crash-after=7")
    (dead,) = (launch for launch in facts.launches if launch.arm == "k3")
    assert (dead.status, dead.exit_code) == (LaunchStatus.FAILED, -9)
    assert dead.failure and "CUDA illegal memory access" in dead.failure
    cells = {cell.cell for cell in facts.cells if cell.launch == dead.launch}
    timed = [r.repetition for r in facts.repetitions if r.cell in cells and r.phase is Phase.TIMED]
    outcomes = Counter(r.outcome for r in facts.requests if r.repetition in timed)
    assert outcomes.total() == 8
    assert set(outcomes) <= {Outcome.OK, Outcome.CUT, Outcome.RESET, Outcome.REFUSED}
    assert Code.LAUNCH_FAILED in {doubt.code for doubt in doubts}


@pytest.mark.parametrize(
    "fault, reason", [("k9:abort", "no arm k9"), ("nonsense", "no such fault"), ("k3:abort=0", "0")]
)
def test_a_fault_that_there_is_not_is_refused_before_anything_starts(tmp_path: Path, fault: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        run_spec(write_spec(tmp_path), sitting=Sitting(faults=(fault,)), watcher=Progress())


def test_a_real_server_gets_nothing_wrong_on_request(tmp_path: Path) -> None:
    source = write_spec(tmp_path, engine={"runtime": "local", "world": None})
    with pytest.raises(SpecError, match="only a stand-in"):
        run_spec(source, sitting=Sitting(faults=("abort",)), watcher=Progress())


RESUMED = {"load": ONE_LEVEL, "design": {"blocks": 2, "once": ["k3"]}}


def sit(folder: Path, **sitting: Any) -> RunFacts:
    """One sitting of a run of five launches."""
    out, source = folder / "run.duckdb", write_spec(folder, **RESUMED)
    run_spec(source, sitting=Sitting(out=out, **sitting), watcher=Progress())
    return read_run(out)


def test_a_run_of_several_sittings_measures_each_launch_of_the_plan_once(tmp_path: Path) -> None:
    first = sit(tmp_path, launches=2)
    assert [launch.launch for launch in first.launches] == [0, 1]
    whole = sit(tmp_path, resume=True)
    plan = [(one.block, one.position, one.arm) for one in whole.launches]
    assert len(set(plan)) == 5
    assert Counter(arm for _, _, arm in plan) == {"baseline": 2, "k3": 1, "adaptive": 2}
    assert whole.launches[:2] == first.launches
    assert [seam.first_launch for seam in whole.resumptions] == [2]
    assert sit(tmp_path, resume=True).launches == whole.launches


def test_an_interrupted_launch_is_begun_again_and_its_first_half_counts_for_nothing(tmp_path: Path) -> None:
    facts = sit(tmp_path, launches=1)
    add_launch(tmp_path / "run.duckdb", replace(facts.launches[0], status=LaunchStatus.INTERRUPTED))
    again = sit(tmp_path, launches=1, resume=True)
    assert [one.status for one in again.launches] == [LaunchStatus.INTERRUPTED, LaunchStatus.COMPLETED]
    assert {(one.block, one.position, one.arm) for one in again.launches} == {(0, 0, again.launches[0].arm)}
    assert {cell.launch for cell in analyse(again).cells} == {1}


@pytest.mark.parametrize("change, reason", [({"load": ONE_LEVEL | {"waves": 3}}, "registered spec"), ({}, "the GPUs")])
def test_another_spec_or_host_is_not_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str
) -> None:
    sit(tmp_path, launches=1)
    if not change:
        monkeypatch.setattr("kit.provenance.host._gpus", lambda: [{"name": "another"}])
    source = write_spec(tmp_path, **(RESUMED | change))
    sitting = Sitting(out=tmp_path / "run.duckdb", resume=True)
    with pytest.raises(SpecError, match=reason):
        run_spec(source, sitting=sitting, watcher=Progress())


TO_THE_END = {
    "load": ONE_LEVEL,
    "losslessness": {"prompts": 10, "concurrency": [2, 4], "max_output_tokens": 200},
    "design": {"blocks": 1, "aa_speed": True},
}


def outputs_run(folder: Path, world: str) -> RunFacts:
    source, out = write_spec(folder, engine={"world": world}, **TO_THE_END), folder / "run.duckdb"
    run_spec(source, sitting=Sitting(out=out, selection=Selection(arms=("baseline", "k3"))), watcher=Progress())
    return read_run(out)


def test_requests_that_arrive_by_the_clock_are_stored_with_their_rate_and_reported(tmp_path: Path) -> None:
    load = {"limits": {"e2e_s": 30.0}, "arrival": {"process": "constant", "rates": [40.0], "requests": 8}}
    run_spec(write_spec(tmp_path, load=load), sitting=only_baseline(tmp_path), watcher=Progress())
    facts = read_run(tmp_path / "run.duckdb")
    (offered,) = (one for one in facts.repetitions if one.phase is Phase.OFFERED)
    sent = sorted(one.sent_ns for one in facts.requests if one.repetition == offered.repetition)
    assert offered.client["per_second"] == 40.0
    assert np.diff(sent) / 1e9 == pytest.approx(np.full(7, 1 / 40), abs=1e-6)
    levels = judge(facts).service.levels
    assert [(level.concurrency, level.per_second) for level in levels] == [(1, None), (4, None), (None, 40.0)]
    assert {cell.concurrency for cell in analyse(facts).cells} == {1, 4}


def test_answers_to_their_natural_end_are_compared_instead_of_the_timed_ones(tmp_path: Path) -> None:
    facts = outputs_run(tmp_path, "crossover")
    phases = Counter(repetition.phase for repetition in facts.repetitions)
    assert (phases[Phase.OUTPUTS], phases[Phase.WARMUP]) == (6, 3)
    own = {repetition.repetition for repetition in facts.repetitions if repetition.phase is Phase.OUTPUTS}
    answers = [request for request in facts.requests if request.repetition in own]
    assert {request.finish_reason for request in answers} == {"stop"}
    analysis = analyse(facts)
    assert {cell.concurrency for cell in analysis.cells} == {4}
    compared = [(one.pairing, one.concurrency, one.prompts, one.equal_ids) for one in analysis.losslessness]
    assert (Pairing.ARM, 2, 10, 10) in compared
    assert (Pairing.ARM, 4, 10, 10) in compared
    assert {one.pairing for one in analysis.losslessness} == {Pairing.ARM, Pairing.AA_TOKENS}


def test_the_baseline_alone_tells_how_near_its_choices_were(tmp_path: Path) -> None:
    facts = outputs_run(tmp_path, "lossy")
    arms = {launch.launch: launch.arm for launch in facts.launches}
    launch_of = {cell.cell: cell.launch for cell in facts.cells}
    own = {r.repetition: arms[launch_of[r.cell]] for r in facts.repetitions if r.phase is Phase.OUTPUTS}
    for request in facts.requests:
        choices = (request.meta_info or {}).get("output_top_logprobs")
        if own.get(request.repetition) == "baseline":
            assert [entry[0][1] for entry in choices or ()] == request.output_ids.tolist()
        else:
            assert choices is None
    parted = [d for one in analyse(facts).losslessness if one.pairing is Pairing.ARM for d in one.divergences]
    assert parted
    assert all(d.margin is not None and d.margin >= 0.05 for d in parted)


@pytest.mark.parametrize("world, word", [("lossy", LosslessWord.VIOLATED), ("crossover", LosslessWord.LOSSLESS)])
def test_the_closing_baseline_is_asked_again_wherever_outputs_part(
    tmp_path: Path, world: str, word: LosslessWord
) -> None:
    sections = TO_THE_END | {"design": {"blocks": 1, "closing_baseline": True}}
    source, out = write_spec(tmp_path, engine={"world": world}, **sections), tmp_path / "run.duckdb"
    run_spec(source, sitting=Sitting(out=out, selection=Selection(arms=("baseline", "k3"))), watcher=Progress())
    facts = read_run(out)
    again = [repetition for repetition in facts.repetitions if repetition.phase is Phase.PREFILL]
    assert len(again) == 2
    compared = [one for one in analyse(facts).losslessness if one.pairing is Pairing.ARM]
    for one in compared:
        assert one.asked_again == 10
        assert one.prefill_spread == pytest.approx(0.01)
        assert all(parted.prefill_margin == pytest.approx(parted.margin) for parted in one.divergences)
    rows = judge(facts).losslessness.rows
    assert {row.word for row in rows} == {word}
    assert all(row.unresolved == 0 for row in rows)
