from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.standin.process import CHAIN, Process, command, free_port, launched

GREEDY = {"temperature": 0, "max_new_tokens": 24, "ignore_eos": True}
Server = tuple[httpx.Client, Process]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """K = 3 with incremental streams."""
    folder = tmp_path_factory.mktemp("chain")
    with (
        launched(folder, *CHAIN, "--incremental-streaming-output") as process,
        httpx.Client(base_url=process.base_url, timeout=20) as client,
    ):
        yield client, process


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """No speculation, cumulative streams."""
    with (
        launched(tmp_path_factory.mktemp("baseline")) as process,
        httpx.Client(base_url=process.base_url, timeout=20) as client,
    ):
        yield client, process


def generate(client: httpx.Client, **body: Any) -> Any:
    response = client.post("/generate", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def events(client: httpx.Client, **body: Any) -> list[Any]:
    with client.stream("POST", "/generate", json={**body, "stream": True}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@contextmanager
def begun(client: httpx.Client, *, rid: str) -> Iterator[Iterator[str]]:
    """The lines of a stream of seconds that has brought its first token; leaving it closes the connection."""
    body = {"rid": rid, "text": "a", "stream": True, "sampling_params": GREEDY | {"max_new_tokens": 490}}
    with client.stream("POST", "/generate", json=body) as response:
        lines = response.iter_lines()
        next(lines)
        yield lines


def test_incremental_chunks_add_up_to_the_answer(chain: Server) -> None:
    client, _ = chain
    whole = generate(client, text="one and the same", sampling_params=GREEDY)
    chunks = events(client, text="one and the same", sampling_params=GREEDY)
    assert "".join(chunk["text"] for chunk in chunks) == whole["text"]
    assert [token for chunk in chunks for token in chunk["output_ids"]] == whole["output_ids"]
    last = chunks[-1]["meta_info"]
    same = set(whole["meta_info"]) - {"id", "e2e_latency", "response_sent_to_client_ts"}
    assert {key: last[key] for key in same} == {key: whole["meta_info"][key] for key in same}
    assert all(chunk["meta_info"]["finish_reason"] is None for chunk in chunks[:-1])


def test_without_the_flag_chunks_are_cumulative(baseline: Server) -> None:
    client, _ = baseline
    chunks = events(client, text="grows", sampling_params=GREEDY)
    lengths = [len(chunk["output_ids"]) for chunk in chunks]
    assert lengths == [chunk["meta_info"]["completion_tokens"] for chunk in chunks]
    assert lengths == sorted(set(lengths)) and lengths[-1] == 24
    assert all(late["text"].startswith(early["text"]) for early, late in pairwise(chunks))


def test_both_arms_answer_alike_and_only_one_counts_rounds(chain: Server, baseline: Server) -> None:
    answers = [generate(client, text="lossless", sampling_params=GREEDY) for client, _ in (chain, baseline)]
    assert answers[0]["output_ids"] == answers[1]["output_ids"]
    speculative = {key for key in answers[0]["meta_info"] if key.startswith("spec_")}
    assert set(answers[0]["meta_info"]) - set(answers[1]["meta_info"]) == speculative
    assert speculative == {
        *("spec_accept_rate", "spec_accept_length", "spec_num_correct_drafts", "spec_num_proposed_drafts"),
        *("spec_verify_ct", "spec_accepted_drafts", "spec_proposed_drafts"),
        *("spec_correct_drafts_histogram", "spec_accept_histogram"),
    }


def test_the_trace_reproduces_every_histogram_under_load(chain: Server) -> None:
    client, process = chain

    def ask(number: int) -> Any:
        rid = f"load-{number:03d}"
        with httpx.Client(base_url=process.base_url, timeout=30) as own:
            return events(
                own, rid=rid, text=f"prompt {number}", sampling_params=GREEDY | {"max_new_tokens": 8 + number}
            )

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    assert client.post("/flush_cache?timeout=2").status_code == 200
    iterations = [json.loads(line) for line in process.trace.read_text().splitlines()]
    assert [iteration["i"] for iteration in iterations] == list(range(len(iterations)))
    assert all(a["t"] < b["t"] for a, b in pairwise(iterations))
    assert {iteration["nd"] for iteration in iterations} == {4}
    assert max(iteration["bs"] for iteration in iterations) > 1
    for answer in answers:
        meta = answer[-1]["meta_info"]
        rows = [
            (row, accepted)
            for iteration in iterations
            for row, accepted in zip(iteration["r"], iteration["a"], strict=True)
            if row[0] == meta["id"]
        ]
        live = [accepted for (_, _, ghost), accepted in rows if not ghost]
        counted = [live.count(j) for j in range(max(live) + 1)]
        assert counted == meta["spec_correct_drafts_histogram"]
        # No ghost where the iteration after the last round was a prefill.
        assert len(rows) - len(live) in (0, 1)
        starts = [before for (_, before, ghost), _ in rows if not ghost]
        assert starts == [1 + sum(a + 1 for a in live[:place]) for place in range(len(live))]


def test_an_unknown_key_beside_the_sampling_parameters_is_ignored(chain: Server) -> None:
    client, _ = chain
    answer = generate(
        client, text="a", sampling_param={"max_new_tokens": 3}, sampling_params={"temperature": 0, "ignore_eos": True}
    )
    assert answer["meta_info"]["completion_tokens"] == 128


@pytest.mark.parametrize(
    "body, message",
    [
        ({}, "Either text, input_ids"),
        ({"text": ""}, "texts cannot be empty"),
        ({"input_ids": []}, "input_ids"),
        (
            {"text": "a", "sampling_params": {"temperature": -1}},
            "temperature must be a non-negative finite number, got -1.",
        ),
        ({"text": "a", "sampling_params": {"top_p": 2}}, "top_p must be in (0, 1], got 2."),
        ({"text": "a", "sampling_params": {"max_new_tokens": -1}}, "max_new_tokens must be at least 0, got -1."),
        ({"text": "a", "sampling_params": {"regex": "a+"}}, "regex"),
    ],
)
def test_a_wrong_value_is_a_400_with_a_reason_and_in_a_stream_an_event(
    chain: Server, body: dict[str, Any], message: str
) -> None:
    client, _ = chain
    response = client.post("/generate", json=body)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]
    (event,) = events(client, **body)
    assert message in event["error"]["message"]
    assert event["error"]["code"] == 400


@pytest.mark.parametrize("content", [b'{"text": 5}', b"{broken"])
def test_a_body_of_the_wrong_type_is_a_400_of_another_shape(chain: Server, content: bytes) -> None:
    client, _ = chain
    response = client.post("/generate", content=content)
    assert response.status_code == 400
    expected = {"object": "error", "message": "", "type": "Bad Request", "param": None, "code": 400}
    assert response.json() | {"message": ""} == expected


def test_reserved_draft_slots_count_against_the_context(chain: Server, baseline: Server) -> None:
    """512 tokens of context: 500 of prompt and 9 of output fit without speculation, not beside 4 draft slots."""
    body = {"input_ids": [9] * 500, "sampling_params": {"temperature": 0, "max_new_tokens": 9, "ignore_eos": True}}
    assert baseline[0].post("/generate", json=body).status_code == 200
    refused = chain[0].post("/generate", json=body)
    assert refused.status_code == 400
    assert "You requested a total of 513 tokens: 504 tokens from the input" in refused.json()["error"]["message"]
    too_long = chain[0].post("/generate", json={"input_ids": [9] * 508})
    assert too_long.json()["error"]["message"] == (
        "The input (512 tokens) is longer than the model's context length (512 tokens)."
    )


def test_what_the_context_cannot_hold_of_the_default_length_is_cut_without_a_word(chain: Server) -> None:
    answer = generate(chain[0], input_ids=[9] * 500, sampling_params={"temperature": 0, "ignore_eos": True})
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 512 - 1 - 500 - 1}


def test_a_rid_in_flight_is_refused_and_a_used_one_is_not(chain: Server) -> None:
    client, _ = chain
    body = {"rid": "twice", "text": "a", "sampling_params": GREEDY}
    with begun(client, rid="twice"):
        refused = client.post("/generate", json=body)
    assert (refused.status_code, refused.json()["error"]["message"][:20]) == (400, "Duplicate request ID")
    assert client.post("/flush_cache?timeout=2").status_code == 200
    assert client.post("/generate", json=body).json()["meta_info"]["id"] == "twice"


def test_an_abort_ends_every_request_with_that_prefix_with_200(chain: Server) -> None:
    client, _ = chain
    with begun(client, rid="ab-10") as lines:
        assert client.post("/abort_request", json={"rid": "ab-1"}).status_code == 200
        chunks = [line for line in lines if line.startswith("data: {")]
    finish = json.loads(chunks[-1].removeprefix("data: "))["meta_info"]["finish_reason"]
    assert finish["type"] == "abort"
    assert client.post("/abort_request", json={"rid": "nobody"}).status_code == 200


def test_a_client_that_leaves_aborts_its_request_and_a_busy_server_does_not_flush(chain: Server) -> None:
    client, _ = chain
    with begun(client, rid="left"):
        assert client.post("/flush_cache").status_code == 400
    flushed = client.post("/flush_cache?timeout=1")
    assert (flushed.status_code, flushed.text[:14]) == (200, "Cache flushed.")
    assert "CancelledError" not in chain[1].log.read_text()


def test_server_info_shows_launch_values_and_values_in_force(chain: Server) -> None:
    client, process = chain
    info = client.get("/server_info").json()
    assert info["version"] == "0.5.15.post1"
    assert (info["speculative_num_steps"], info["max_running_requests"], info["status"]) == (3, 48, "ready")
    (state,) = info["internal_states"]
    assert state["effective_max_running_requests_per_dp"] == 48
    assert state["speculative_num_draft_tokens"] == 4
    assert state["standin"]["late"] <= state["standin"]["iterations"]
    lines = len(process.trace.read_text().splitlines())
    assert state["speckit_trace"]["records"] <= lines and state["speckit_trace"]["dropped"] == 0
    assert client.get("/get_server_info").json().keys() == info.keys()


def test_model_info_and_unknown_paths_answer_as_sglang_does(baseline: Server) -> None:
    client, _ = baseline
    assert client.get("/model_info").json()["model_path"] == "m"
    assert (client.get("/metrics").status_code, client.get("/metrics").json()) == (404, {"detail": "Not Found"})


def test_a_health_check_is_a_generation_that_leaves_a_ghost(baseline: Server) -> None:
    client, process = baseline
    assert client.get("/health_generate").status_code == 200
    assert client.post("/flush_cache?timeout=1").status_code == 200
    (rid, before, ghost), *others = json.loads(process.trace.read_text().splitlines()[-1])["r"]
    assert (rid[:12], before, ghost, others) == ("HEALTH_CHECK", 1, 1, [])


def test_the_log_has_the_lines_that_sglang_writes(chain: Server) -> None:
    log = chain[1].log.read_text()
    for line in (
        "server_args=ServerArgs(",
        "Capture target verify CUDA graph begin. backend=full, num_tokens_per_bs=4, bs=[1, 2, 3",
        "max_total_num_tokens=3118031, chunked_prefill_size=8192",
        "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0",
        "The server is fired up and ready to roll!",
        "Decode batch, #running-req: ",
        '"POST /generate HTTP/1.1" 200',
    ):
        assert line in log, line


def test_an_adaptive_launch_below_its_largest_candidate_kills_itself() -> None:
    done = subprocess.run(command(*CHAIN, "--speculative-adaptive", port=free_port()), capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    assert "Scheduler hit an exception" in done.stderr
    assert "AssertionError: shared logits buffer holds 192 rows but caller needs 384" in done.stderr


def test_a_taken_port_ends_the_start_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(command(port=taken.getsockname()[1]), capture_output=True, text=True)
    assert done.returncode > 0
    assert "address already in use" in done.stderr


def test_an_unknown_world_ends_the_start_with_status_2(tmp_path: Path) -> None:
    done = subprocess.run([*command(port=1), "--world", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: world nowhere")
