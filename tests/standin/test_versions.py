"""What a version does that another does not, and shapes of answers that no recording has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kit.contract import load
from kit.errors import SpecError
from kit.standin.adaptive import candidates
from kit.standin.launch import prepare
from tests.standin.process import CHAIN
from tests.standin.served import FLAGS, served

GREEDY = {"temperature": 0, "max_new_tokens": 12, "ignore_eos": True}
ADAPTIVE = (*CHAIN[:4], "--speculative-adaptive", "--speculative-eagle-topk", "1")
VERSIONS = ("0.5.15.post1", "0.5.21", "0.5.23")


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, httpx.Client]]:
    """Each version with K = 3 and incremental streams."""
    with served("--version", request.param, *CHAIN, "--incremental-streaming-output") as client:
        yield request.param, client


@pytest.fixture(scope="module")
def pinned() -> Iterator[httpx.Client]:
    """0.5.15 without speculation, one request at a time and one in the queue, each token in milliseconds."""
    with served("--world", "crossover", "--max-running-requests", "1", "--max-queued-requests", "1") as client:
        yield client


def events(client: httpx.Client, **body: Any) -> list[Any]:
    with client.stream("POST", "/generate", json={**body, "stream": True}) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("streams", [False, True])
def test_an_unknown_sampling_key_is_an_exception_before_0_5_23_and_a_named_refusal_from_then_on(
    server: tuple[str, httpx.Client], streams: bool
) -> None:
    version, client = server
    body = {"text": "a", "stream": streams, "sampling_params": {"seed": 1}}
    if version == "0.5.23":
        answer = client.post("/generate", json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        assert answer.json()["error"].startswith("unknown field `seed`, expected one of `")
    elif streams:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            client.post("/generate", json=body)
    else:
        answer = client.post("/generate", json=body)
        assert (answer.status_code, answer.text) == (500, "Internal Server Error")


@pytest.mark.parametrize("value", ["hot", [1]])
def test_a_value_of_the_wrong_type_goes_the_same_way(server: tuple[str, httpx.Client], value: Any) -> None:
    version, client = server
    answer = client.post("/generate", json={"text": "a", "sampling_params": {"temperature": value}})
    assert answer.status_code == (400 if version == "0.5.23" else 500)
    assert version != "0.5.23" or answer.json()["error"] == "invalid type for `temperature`, expected float"


def test_info_names_the_version_and_its_own_arguments(server: tuple[str, httpx.Client]) -> None:
    version, client = server
    info = client.get("/server_info").json()
    assert info["version"] == version
    assert load(version).server_fields <= info.keys()
    assert [client.get(path).status_code for path in ("/ready", "/get_load")] == (
        [404, 200] if version == "0.5.15.post1" else [200, 404]
    )


def test_only_the_oldest_version_sends_the_old_names_of_accepted_drafts(server: tuple[str, httpx.Client]) -> None:
    version, client = server
    meta = client.post("/generate", json={"text": "a", "sampling_params": GREEDY}).json()["meta_info"]
    assert ("spec_accepted_drafts" in meta) == (version == "0.5.15.post1")
    assert ("weight_versions" in meta) == (version != "0.5.15.post1")
    assert {key for key in meta if key.startswith("spec_")} <= set(_facts(version)["sent"])


def test_a_request_that_ends_at_prefill_has_no_word_about_speculation(server: tuple[str, httpx.Client]) -> None:
    body = {"text": "a", "sampling_params": GREEDY | {"max_new_tokens": 1}}
    meta = server[1].post("/generate", json=body).json()["meta_info"]
    assert not [key for key in meta if key.startswith("spec_")]


def test_a_stop_string_ends_the_text_before_it_even_where_ends_of_sequence_are_ignored(
    server: tuple[str, httpx.Client],
) -> None:
    _, client = server
    whole = client.post("/generate", json={"text": "s", "sampling_params": GREEDY}).json()
    word = whole["text"].split()[5]
    for trims in (True, False):
        body = {"text": "s", "sampling_params": GREEDY | {"stop": [word, "zzz"], "no_stop_trim": not trims}}
        answer = client.post("/generate", json=body).json()
        assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": word}
        assert answer["output_ids"] == whole["output_ids"][:6]
        assert answer["text"] == whole["text"].partition(word)[0] + ("" if trims else word)
        assert "".join(event["text"] for event in events(client, **body)) == answer["text"]


def test_a_batch_is_answered_with_a_list_and_streams_with_an_index(server: tuple[str, httpx.Client]) -> None:
    _, client = server
    body = {"text": ["one", "two"], "rid": "b", "sampling_params": [GREEDY, GREEDY | {"max_new_tokens": 3}]}
    answers = client.post("/generate", json=body).json()
    assert [answer["meta_info"]["id"] for answer in answers] == ["b_0", "b_1"]
    assert [len(answer["output_ids"]) for answer in answers] == [12, 3]
    chunks = events(client, **body)
    for index, answer in enumerate(answers):
        parts = [chunk["output_ids"] for chunk in chunks if chunk["index"] == index]
        assert [token for part in parts for token in part] == answer["output_ids"]


def test_several_samples_are_a_list_under_ids_that_the_client_did_not_give(server: tuple[str, httpx.Client]) -> None:
    _, client = server
    answers = client.post(
        "/generate", json={"text": "a", "rid": "mine", "sampling_params": {"n": 2, "max_new_tokens": 4}}
    ).json()
    assert len({answer["meta_info"]["id"] for answer in answers} - {"mine"}) == 2


@pytest.mark.parametrize(("n", "answers"), [(0, 1), (-2, 1), (2, 2), ("2", 0), (2.5, 0)])
def test_the_number_of_samples_is_compared_with_one_as_it_stands(
    server: tuple[str, httpx.Client], n: object, answers: int
) -> None:
    version, client = server
    response = client.post("/generate", json={"text": "a", "sampling_params": {"n": n, "max_new_tokens": 4}})
    if answers:
        assert response.status_code == 200
        assert len(response.json() if answers > 1 else [response.json()]) == answers
    else:
        assert response.status_code == (400 if version == "0.5.23" else 500)


@pytest.mark.parametrize(
    "body",
    [
        {"text": ["a", "b"], "rid": ["x"]},
        {"text": ["a", "b"], "rid": ["x", "x"]},
        {"text": ["a", "b"], "sampling_params": [{}]},
    ],
)
def test_a_batch_that_does_not_add_up_is_a_400(server: tuple[str, httpx.Client], body: dict[str, Any]) -> None:
    answer = server[1].post("/generate", json=body)
    assert (answer.status_code, list(answer.json()["error"])) == (400, ["message"])


@pytest.mark.parametrize(
    "path, text",
    [
        ("/freeze_gc", "Garbage collection frozen.\n"),
        ("/start_profile", "Start profiling.\n"),
        ("/stop_profile", "Stop"),
    ],
)
def test_controls_that_change_nothing_here_are_taken(pinned: httpx.Client, path: str, text: str) -> None:
    for method in ("GET", "POST"):
        answer = pinned.request(method, path)
        assert (answer.status_code, answer.text[: len(text)]) == (200, text)


@contextmanager
def one_running_and_one_queued(client: httpx.Client) -> Iterator[Future[httpx.Response]]:
    """The answer to the queued request, whose rid is `queued-1`."""
    # A connection that closes aborts its rid when the server notices, which may be in the next test.
    long = {
        "rid": f"first-{uuid4().hex}",
        "text": "a",
        "stream": True,
        "sampling_params": GREEDY | {"max_new_tokens": 490},
    }
    queued = {"rid": "queued-1", "text": "b", "sampling_params": GREEDY}
    with ThreadPoolExecutor(1) as pool, client.stream("POST", "/generate", json=long) as running:
        # Dropping the iterator would close the connection and so abort the request.
        chunks = running.iter_raw()
        next(chunks)
        answer = pool.submit(httpx.post, client.base_url.join("/generate"), json=queued, timeout=10)
        while client.get("/get_load").json()[0]["num_waiting_reqs"] == 0:
            pass
        yield answer
        client.post("/abort_request", json={"abort_all": True})


def test_a_full_queue_is_a_503_and_inside_a_stream_an_abort(pinned: httpx.Client) -> None:
    body = {"text": "a", "sampling_params": GREEDY}
    with one_running_and_one_queued(pinned):
        whole = pinned.post("/generate", json=body)
        (event,) = events(pinned, **body)
    problem = {"message": "The request queue is full.", "type": "503", "param": None, "code": 503}
    assert (whole.status_code, whole.json()) == (503, {"object": "error"} | problem)
    finish = event["meta_info"]["finish_reason"]
    assert (finish["type"], finish["status_code"], finish["message"]) == ("abort", 503, problem["message"])


def test_an_abort_in_the_queue_answers_200_with_a_short_meta_info(pinned: httpx.Client) -> None:
    with one_running_and_one_queued(pinned) as queued:
        pinned.post("/abort_request", json={"rid": "queued"})
        answer = queued.result(timeout=10)
    meta = answer.json()["meta_info"]
    assert (answer.status_code, meta["finish_reason"]) == (200, {"type": "abort", "message": "Abort in waiting queue"})
    expected: Any = load("0.5.15.post1").facts["meta_info"]
    assert meta.keys() - {"response_sent_to_client_ts"} == set(expected["abort_while_waiting"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_built_in_ladder_and_where_it_can_start_are_those_of_the_version(version: str) -> None:
    largest = prepare((*FLAGS, *ADAPTIVE, "--version", version, "--speculative-num-steps", "7")).settings
    assert largest.speculation is not None and largest.speculation.ladder is not None
    old = version == "0.5.15.post1"
    assert candidates(largest.speculation.ladder) == ((0, 1, 3, 7) if old else (0, 1, 3, 5, 7))
    assert largest.dialect.buffer_by_launch == old
    if not old:
        middle = prepare((*FLAGS, *ADAPTIVE, "--version", version)).settings.speculation
        assert middle is not None and middle.steps == 3


def test_only_0_5_23_foresees_ends_by_length() -> None:
    assert [prepare((*FLAGS, "--version", each)).settings.dialect.foresees_length for each in VERSIONS] == [
        False,
        False,
        True,
    ]


def test_a_version_without_a_contract_is_an_error_that_names_those_with_one() -> None:
    with pytest.raises(SpecError, match=r"no contract for SGLang 0\.4, only for 0\.5\.15\.post1"):
        prepare((*FLAGS, "--version", "0.4"))


def _facts(version: str) -> Any:
    return load(version).facts["speculative_meta_info"]
