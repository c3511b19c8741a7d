"""A baseline that talks to an older, speculating server on the same port: refused, whatever the numbers say."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kit.checks import CellState, Code, Severity
from kit.diagnosis import Cause, diagnose
from kit.errors import ServerError
from kit.records import Launch, Origin, RunFacts
from kit.runtime import Order, ProcessServer
from kit.sglang import identity_problem, leftover_problem
from kit.verdict import Verdict, judge
from tests.builders import build_run, build_spec, eagle3, edit_launches, edit_requests, shared_run
from tests.field.inputs import answered_run, objects, rows, text

RUN, INFO = objects("F23", "run.json"), objects("F23", "server_info.json")
ANSWERS = [row["meta_info"] for row in rows("F23", "responses.jsonl")]
COMMAND = ("sglang", "--host", "127.0.0.1", "--port", str(RUN["port"]))
ARMS = [{"kind": "baseline", "name": "baseline"}, eagle3(3)]
SPEC = build_spec(models={"target": {"path": INFO["model_path"], "dtype": "bfloat16"}})


def launched(facts: RunFacts, *, arm: str, info: dict[str, Any], startup_s: float) -> RunFacts:
    """`facts` whose servers of `arm` said `info` when something answered."""

    def change(one: Launch) -> Launch:
        return replace(one, server_info=info, startup_s=startup_s, started_utc=RUN["launched_at"], command=COMMAND)

    return edit_launches(facts, change, arm=arm)


def refused(verdict: Verdict, arm: str) -> list[str]:
    """Why every cell of `arm` is void; fails unless it is."""
    states = {cell.state for cell in verdict.doubts.cells if cell.arm == arm}
    assert states == {CellState.INVALID}
    assert arm not in {one.comparison.arm for one in verdict.speed.comparisons if one.word.value != "inconclusive"}
    wrong = [one for one in verdict.doubts.doubts if one.code is Code.WRONG_SERVER and one.arm == arm]
    assert {one.severity for one in wrong} == {Severity.INVALID}
    return [one.message for one in wrong]


def test_the_field_run_is_refused_with_every_reason() -> None:
    facts = answered_run({"baseline": ANSWERS}, ARMS)
    facts = launched(facts, arm="baseline", info=INFO, startup_s=RUN["ready_after_s"])
    told = " | ".join(refused(judge(facts), "baseline"))
    assert "speculative_algorithm is 'EAGLE3' instead of None" in told
    assert "started at 2026-01-05 09:31:12, 34 minutes before this launch" in told
    assert "ready 0.4 s after this launch, sooner than SGLang can be imported" in told
    assert "3 answers of the baseline count verify rounds, 2.91 tokens each" in told


def test_a_comparison_with_that_baseline_has_no_word() -> None:
    facts = launched(shared_run(), arm="baseline", info=INFO, startup_s=RUN["ready_after_s"])
    assert {one.word.value for one in judge(facts).speed.comparisons} == {"inconclusive"}


def test_the_new_servers_log_says_that_the_port_was_taken() -> None:
    found = diagnose(text("F23", "new_server.log"), exit_code=1)
    assert found.cause is Cause.PORT_IN_USE
    assert str(RUN["port"]) in found.title
    assert "by its own id" in found.advice


def test_identity_is_held_against_what_was_asked_for() -> None:
    baseline = identity_problem(INFO, SPEC, SPEC.arm("baseline"))
    assert "speculative_algorithm is 'EAGLE3' instead of None" in (baseline or "")


# One sign each, on an arm that speculates: nothing else is wrong with the server.
OWN = {
    "model_path": "target",
    "max_running_requests": 8,
    "max_total_num_tokens": 100_000,
    "speculative_algorithm": "EAGLE3",
    "speculative_eagle_topk": 1,
    "speculative_num_steps": 3,
    "speculative_adaptive": False,
}


@pytest.mark.parametrize(
    ("sign", "startup_s", "reason"),
    [
        ({"speculative_num_steps": 5, "speculative_num_draft_tokens": 6}, 31.0, "speculative_num_steps is 5 instead"),
        ({"speculative_num_draft_tokens": 8}, 31.0, "speculative_num_draft_tokens is 8 instead of 4"),
        ({"port": 30001}, 31.0, "listens on port 30001, not 30000"),
        ({"started_at": "2026-01-05T09:58:00+00:00"}, 31.0, "7 minutes before this launch"),
        ({"startup_time": {"tokenizer_e2e": 48.2}}, 2.0, "took 48.2 s to start and answered 2.0 s after this launch"),
        ({}, 0.2, "ready 0.2 s after this launch"),
    ],
    ids=["depth", "draft tokens", "port", "start time", "start-up longer than the wait", "ready at once"],
)
def test_each_sign_of_a_leftover_server_voids_the_arm(sign: dict[str, Any], startup_s: float, reason: str) -> None:
    facts = launched(shared_run(), arm="eagle3_k3", info=OWN | sign, startup_s=startup_s)
    assert reason in " | ".join(refused(judge(facts), "eagle3_k3"))


def test_a_server_of_its_own_launch_shows_no_sign() -> None:
    own = OWN | {"port": 30000, "started_at": "2026-01-05 10:05:00", "startup_time": {"tokenizer_e2e": 30.1}}
    found = leftover_problem(own, command=COMMAND, started_utc="2026-01-05T10:05:00.400+00:00", startup_s=31.0)
    assert found is None


def test_a_simulated_server_may_start_at_once() -> None:
    facts = edit_launches(build_run(origin=Origin.SIMULATED), lambda one: replace(one, startup_s=0.1))
    assert Code.WRONG_SERVER not in {one.code for one in judge(facts).doubts.doubts}


def test_one_answer_with_counts_voids_a_baseline_that_otherwise_looks_right() -> None:
    facts = edit_requests(
        shared_run(), lambda one: replace(one, verify_rounds=44, meta_info=ANSWERS[0]), arm="baseline", first=1
    )
    wrong = [one for one in judge(facts).doubts.doubts if one.code is Code.WRONG_SERVER]
    assert [one.message.partition(":")[0] for one in wrong] == [
        "1 answers of the baseline count verify rounds, 2.91 tokens each"
    ]


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def older_server() -> Iterator[int]:
    """The port of a server that was there before, in another process group's eyes: this test's own."""
    with HTTPServer(("127.0.0.1", 0), _Healthy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("lives", [False, True], ids=["new one died", "new one is still loading"])
def test_an_answer_from_anothers_port_is_not_taken_for_the_launch(
    older_server: int, lives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.runtime.process._free_port", lambda: older_server)
    script = "import time; time.sleep(600)" if lives else f"print({text('F23', 'new_server.log')!r})"
    server = ProcessServer(
        (sys.executable, "-c", script), Order(0, "baseline", "0.5.15.post1", (), {}, tmp_path, startup_timeout_s=20)
    )
    with pytest.raises(ServerError) as error:
        server.start()
    server.stop()
    assert f"another process listens on port {older_server}" in str(error.value)
