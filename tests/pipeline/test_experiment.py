"""Measuring the stand-in end to end: what was sent, served and traced agrees, and nothing is lost or left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kit.console import Progress
from kit.errors import ServerError
from kit.pipeline import run_spec
from kit.plan import Selection
from kit.records import LaunchStatus, Origin, Outcome, Phase, RunFacts
from kit.store import read_run
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


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    folder = tmp_path_factory.mktemp("run")
    run_spec(write_spec(folder), out=folder / "run.duckdb", selection=Selection(), watcher=Progress())
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
    run_spec(source, out=tmp_path / "run.duckdb", selection=Selection(), watcher=Progress())
    launches = {launch.arm: launch for launch in read_run(tmp_path / "run.duckdb").launches}
    assert launches["baseline"].status is LaunchStatus.COMPLETED
    assert (launches["adaptive"].status, launches["adaptive"].exit_code) == (LaunchStatus.FAILED, -9)
    assert "logits buffer" in launches["adaptive"].log


def test_a_run_without_one_working_launch_is_an_error(tmp_path: Path) -> None:
    source = write_spec(tmp_path, engine={"startup_timeout_s": 0.01})
    with pytest.raises(ServerError, match="no launch worked"):
        run_spec(source, out=tmp_path / "run.duckdb", selection=Selection(arms=("baseline",)), watcher=Progress())
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
    run_spec(write_spec(tmp_path), out=tmp_path / "run.duckdb", selection=Selection(), watcher=killer)
    facts = read_run(tmp_path / "run.duckdb")
    first, *others = facts.launches
    assert (first.status, first.exit_code) == (LaunchStatus.FAILED, -signal.SIGKILL)
    assert "killed from outside (SIGKILL)" in (first.failure or "")
    assert first.server_info is not None and "ready to roll" in first.log
    assert [launch.status for launch in others] == [LaunchStatus.COMPLETED] * 2
    assert {cell.launch for cell in facts.cells} == {launch.launch for launch in others}


def test_interrupting_keeps_what_was_finished_and_leaves_no_server(tmp_path: Path) -> None:
    source = write_spec(tmp_path, load={"concurrency": [1, 4], "waves": 15, "min_requests": 15, "warmup_requests": 1})
    out = tmp_path / "run.duckdb"
    command = [sys.executable, "-m", "kit", "run", str(source), "--out", str(out), "--reports", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as kit:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (repetitions := _repetitions(out)):
            time.sleep(0.2)
        servers = _children(kit.pid)
        kit.send_signal(signal.SIGINT)
        message = kit.communicate(timeout=30)[1]
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
    monkeypatch.setattr("kit.pipeline.experiment.disturbed", lambda repetition, *, noise_threshold: True)
    source = write_spec(tmp_path, load={"concurrency": [1], "waves": 1, "min_requests": 2})
    run_spec(source, out=tmp_path / "run.duckdb", selection=Selection(arms=("baseline",)), watcher=Progress())
    facts = read_run(tmp_path / "run.duckdb")
    assert [r.phase for r in facts.repetitions] == [Phase.WARMUP, Phase.DISTURBED, Phase.DISTURBED, Phase.TIMED]
    assert len({request.rid for request in facts.requests}) == len(facts.requests)
