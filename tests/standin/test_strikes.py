"""Every fault of a request, seen through the load generator: the right outcome, and no row lost."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from kit.diagnosis import Cause, diagnose
from kit.load import Job, Patience, Prompt, drive, to_record
from kit.records import Outcome, RequestRecord
from kit.standin.faults import Strike
from tests.standin.process import CHAIN, Process, command, free_port, started
from tests.standin.served import FLAGS, served

OUTCOMES = {
    Strike.HTTP_500_EMPTY: Outcome.HTTP_ERROR,
    Strike.HTTP_503: Outcome.HTTP_ERROR,
    Strike.CUT_BODY: Outcome.CUT,
    Strike.STREAM_ERROR: Outcome.STREAM_ERROR,
    Strike.ABORT: Outcome.ABORTED,
    Strike.EMPTY_OUTPUT: Outcome.EMPTY,
    Strike.NAN: Outcome.NAN,
    Strike.MALFORMED: Outcome.MALFORMED,
    Strike.HANG: Outcome.TIMEOUT,
}


def load(base_url: str, *, requests: int, timeout_s: float = 2.0) -> list[RequestRecord]:
    """Records of a closed loop of three."""
    prompts = [Prompt(f"p{number}", "any", f"prompt {number}", 6) for number in range(requests)]
    sampling = {"temperature": 0, "max_new_tokens": 6, "ignore_eos": True}
    jobs = [
        Job(f"r-{number}", {"rid": f"r-{number}", "text": prompt.text, "stream": True, "sampling_params": sampling})
        for number, prompt in enumerate(prompts)
    ]
    exchanges, _ = asyncio.run(drive(base_url, jobs, concurrency=3, patience=Patience(timeout_s)))
    return [
        to_record(exchange, prompt, repetition=0, index=index, speculative=True)
        for index, (exchange, prompt) in enumerate(zip(exchanges, prompts, strict=True))
    ]


def test_every_fault_of_a_request_has_an_outcome() -> None:
    assert OUTCOMES.keys() == set(Strike)


@pytest.mark.parametrize("strike", Strike)
def test_a_struck_request_has_its_outcome_and_the_others_are_whole(strike: Strike) -> None:
    with served(*CHAIN, "--incremental-streaming-output", "--fault", f"{strike}=2") as client:
        # A request that hangs is only known by waiting.
        records = load(str(client.base_url).rstrip("/"), requests=6, timeout_s=0.7 if strike is Strike.HANG else 10)
        health = client.get("/health").status_code
    assert [record.rid for record in records] == [f"r-{number}" for number in range(6)]
    assert sorted(record.outcome for record in records) == sorted([OUTCOMES[strike], Outcome.OK] * 3)
    for record in records:
        assert (record.error is None) == (record.outcome is Outcome.OK)
        assert record.outcome is not Outcome.OK or record.completion_tokens == 6
    assert health == 200


@pytest.mark.parametrize(
    "strike, status", [(Strike.HTTP_500_EMPTY, 500), (Strike.HTTP_503, 503), (Strike.NAN, 200), (Strike.ABORT, 200)]
)
def test_the_same_without_a_stream(strike: Strike, status: int) -> None:
    with served("--fault", strike) as client:
        answer = client.post("/generate", json={"text": "a", "sampling_params": {"max_new_tokens": 4}})
    assert answer.status_code == status
    if strike is Strike.NAN:
        assert answer.json()["meta_info"]["finish_reason"] == {"type": "stop", "matched": "NaN happened"}
    if strike is Strike.HTTP_500_EMPTY:
        assert answer.content == b""


def test_a_crash_under_load_leaves_a_record_of_every_request_and_its_reason_in_the_log(tmp_path: Path) -> None:
    port = free_port()
    server = Process(f"http://127.0.0.1:{port}", tmp_path / "server.log", tmp_path / "trace.jsonl")
    flags = (*FLAGS, *CHAIN, "--fault", "crash-after=4")
    with server.log.open("wb") as log:
        process = subprocess.Popen(command(*flags, port=port), stdout=log, stderr=log)
        started(server, process)
        records = load(server.base_url, requests=9)
        assert process.wait(timeout=10) == -signal.SIGKILL
    outcomes = [record.outcome for record in records]
    assert len(records) == 9
    assert outcomes.count(Outcome.OK) <= 4
    assert set(outcomes[4:]) <= {Outcome.RESET, Outcome.CUT, Outcome.REFUSED}
    assert diagnose(server.log.read_text(), exit_code=-9).cause is Cause.ILLEGAL_MEMORY_ACCESS
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.base_url}/health")
