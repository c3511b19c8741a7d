"""The stand-in against recorded traffic of real servers: the same requests, and answers of the same shape."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.contract import load
from tests.standin.differences import differences, received, recorded
from tests.standin.process import CHAIN
from tests.standin.served import served

DATA = Path(__file__).parents[1] / "data"
LIMITS = ("--context-length", "2048", "--max-total-tokens", "16384", "--max-running-requests", "8")
LAUNCHES: dict[str, tuple[str, ...]] = {
    "0.5.15.post1": ("--version", "0.5.15.post1"),
    "0.5.21": ("--version", "0.5.21"),
    "0.5.21 chain": ("--version", "0.5.21", *CHAIN),
    "0.5.23 chain": ("--version", "0.5.23", *CHAIN),
}
# Which launch plays which recorded server. NGRAM and EAGLE answer with the keys of EAGLE3.
SERVERS = {
    "recorded/v0515": "0.5.15.post1",
    "recorded/base": "0.5.21",
    "recorded/default": "0.5.21",
    "recorded/eagle3": "0.5.21 chain",
    "recorded_algorithms/eagle": "0.5.21 chain",
    "recorded_algorithms/ngram": "0.5.21 chain",
    "recorded/v0523": "0.5.23 chain",
}


def lacks(place: str, *keys: str) -> set[str]:
    return {f"{place}{key} is missing" for key in keys}


def absent(*names: str, recorded: int | None = 200, own: int = 404) -> set[str]:
    return {f"{name}: status {own} instead of {recorded}" for name in names}


# Every difference there is, by the reason why it stays.
DELIBERATE: dict[str, set[str]] = {
    "OpenAI's endpoints and the description of all endpoints are not simulated": {
        *absent("chat", "chat_seed", "chat_stream", "chat_unknown", "completions", "completions_seed", "openapi"),
        *absent("chat_bad", recorded=400),
    },
    "grammars and log probabilities are not simulated, and say so": absent(
        *("generate_regex", "generate_json_schema", "generate_logprob", "generate_logprob_text"), own=400
    ),
    "the real server died of it on a CPU": {
        *absent("generate_empty_text", "generate_json_schema", recorded=None, own=400),
        *absent("generate_ids_oov", recorded=None, own=200),
    },
    "--enable-metrics is not simulated": {
        *absent("metrics"),
        *lacks("/generate: meta_info.", "forward_entry_time", "prefill_finished_time", "queue_time"),
        *lacks("/generate: meta_info.", "request_received_ts", "api_server_dispatch_finish_ts", "request_finished_ts"),
        *lacks("/generate: meta_info.", "decode_throughput", "first_token_latency", "response_sent_to_client_ts"),
    },
    "the stand-in tells how it kept up": {"/server_info: internal_states.standin is too much"},
    "NGRAM is played by EAGLE3, and had decoded less by then": {
        "/server_info: internal_states.avg_spec_accept_length is too much",
        "/v1/loads: loads.speculative is too much",
    },
    "details of the model, the cache and the machine that nobody reads": {
        "/server_info: internal_states.memory_usage.graph is float instead of int",
        *lacks("/model_info: embedding.", "bcg", "cache"),
        *lacks("/server_info: ", "hicache_object_layout"),
        *lacks("/server_info: internal_states._", "cuda_graph_config_locked", "declarations_materialized"),
        *lacks("/server_info: internal_states._", "mx_config_cache", "quantization_explicitly_unset"),
        *lacks("/server_info: internal_states.", "_resolved_overrides", "enable_grpc", "grpc_port", "startup_time"),
        *lacks("/v1/loads: loads.", "decode_moments", "disaggregation", "num_active_tokens", "timestamp"),
        *lacks("/v1/loads: loads.", "num_prealloc_ready_tokens", "queues.prealloc_ready"),
        *lacks("/v1/loads: loads.", "total_prefill_busy_us", "total_prefill_uncached_tokens"),
    },
}


def calls(server: str) -> list[dict[str, Any]]:
    with lzma.open(DATA / f"{server}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def send(client: httpx.Client, request: dict[str, Any]) -> httpx.Response:
    content = request["raw"] if request["raw"] is not None else json.dumps(request["body"]).encode()
    has_body = request["raw"] is not None or request["body"] is not None
    headers = request["headers"]
    return client.request(request["method"], request["path"], content=content if has_body else None, headers=headers)


def in_own_words(client: httpx.Client, call: dict[str, Any]) -> Any:
    """The request with what makes this model's answer end as the recorded one did, and after as many tokens."""
    request = call["request"]
    match request["body"], call["response"]["json"]:
        case dict(body), {"output_ids": [*_, _] as ids, "meta_info": {"finish_reason": finish}}:
            end = ending(client, body, finish, at=len(ids) - 1)
            return request | {"body": body | {"sampling_params": (body.get("sampling_params") or {}) | end}}
    return request


def ending(client: httpx.Client, body: dict[str, Any], finish: dict[str, Any], *, at: int) -> dict[str, Any]:
    """The sampling parameters that end an answer behind its token `at`."""
    endless = {"ignore_eos": True, "stop": None, "stop_token_ids": None}
    if finish["type"] == "length":
        return endless
    parameters = (body.get("sampling_params") or {}) | endless
    answer = client.post("/generate", json=body | {"sampling_params": parameters})
    if answer.status_code != 200:
        return {}
    if isinstance(finish["matched"], int):
        return {"stop_token_ids": [answer.json()["output_ids"][at]]}
    return {"stop": [answer.json()["text"].split()[at]]}


def differing(client: httpx.Client, server: str, version: str) -> Iterator[str]:
    nullable = load(version).server_fields | {"cached_tokens_details"}
    for call in calls(server):
        answer = received(send(client, in_own_words(client, call)))
        for difference in differences(recorded(call["response"]), answer, nullable=nullable):
            whole = difference.startswith(("status", "content-type"))
            place = call["name"] if whole else call["request"]["path"].replace("/get_", "/")
            yield f"{place}: {difference}"


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """Every difference by recorded server."""
    differs: dict[str, set[str]] = {}
    for name, flags in LAUNCHES.items():
        with served(*LIMITS, *flags) as client:
            version = name.partition(" ")[0]
            differs |= {each: set(differing(client, each, version)) for each, own in SERVERS.items() if own == name}
    return differs


@pytest.mark.parametrize("server", SERVERS)
def test_answers_have_the_shape_that_the_real_server_sent(found: dict[str, set[str]], server: str) -> None:
    assert found[server] - set().union(*DELIBERATE.values()) == set()


def test_every_deliberate_difference_is_still_one(found: dict[str, set[str]]) -> None:
    assert set().union(*DELIBERATE.values()) - set().union(*found.values()) == set()


def test_every_recording_is_replayed() -> None:
    recordings = {f"{path.parent.name}/{path.name.partition('.')[0]}" for path in DATA.glob("recorded*/*.jsonl.xz")}
    assert recordings == SERVERS.keys()
