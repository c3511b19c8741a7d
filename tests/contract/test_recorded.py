"""The contracts against recorded traffic of real SGLang servers: what they took, what they refused, what they sent."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.contract import load

RECORDED = Path(__file__).parents[1] / "data" / "recorded"

SERVERS = {
    "v0515": "0.5.15.post1",
    "base": "0.5.21",
    "default": "0.5.21",
    "eagle3": "0.5.21",
    "v0523": "0.5.23",
}

# Refusals that depend on the model or the machine and so cannot be in a contract.
BEYOND = {"generate_too_long", "generate_len_plus_max", "generate_ids_oov", "generate_json_schema"}


def calls(server: str) -> list[dict[str, Any]]:
    with lzma.open(RECORDED / f"{server}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def generated(server: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for call in calls(server):
        if call["request"]["path"] == "/generate" and isinstance(call["request"]["body"], dict):
            yield call["name"], call["request"]["body"], call["response"]


def refused(response: dict[str, Any]) -> bool:
    return response["status"] != 200 or '"error"' in (response["text"] or "")


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_server_refused_is_a_problem(server: str) -> None:
    contract = load(SERVERS[server])
    cases = [(n, body) for n, body, response in generated(server) if refused(response) and n not in BEYOND]
    assert cases
    assert [name for name, body in cases if not contract.check_request(body)] == []


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_server_took_is_no_problem_unless_it_took_it_for_something_else(server: str) -> None:
    contract = load(SERVERS[server])
    taken = {name: body for name, body, response in generated(server) if not refused(response)}
    assert {name for name, body in taken.items() if contract.check_request(body)} == {
        "generate_text_and_ids",
        "generate_top_seed",
        "generate_unknown_top",
    }


def meta_infos(value: Any) -> Iterator[dict[str, Any]]:
    match value:
        case {"meta_info": dict(meta)}:
            yield meta
        case list(items):
            for item in items:
                yield from meta_infos(item)


@pytest.mark.parametrize("server", SERVERS)
def test_every_key_a_server_sent_is_a_key_the_contract_knows(server: str) -> None:
    facts = load(SERVERS[server]).facts
    meta_info, speculative = facts["meta_info"], facts["speculative_meta_info"]
    assert isinstance(meta_info, dict) and isinstance(speculative, dict)
    known = {key for keys in meta_info.values() for key in keys} | set(speculative["sent"])
    sent = {key for _, _, response in generated(server) for meta in meta_infos(response["json"]) for key in meta}
    assert set(meta_info["every"]) <= sent
    assert sent <= known


@pytest.mark.parametrize("server", SERVERS)
def test_server_info_reports_every_server_field_and_a_few_of_its_own(server: str) -> None:
    (info,) = [c["response"]["json"] for c in calls(server) if c["name"] == "server_info"]
    fields = load(SERVERS[server]).server_fields
    assert fields <= info.keys()
    assert info.keys() - fields <= {
        "frontend",
        "hicache_object_layout",
        "internal_states",
        "kv_events",
        "launch_command",
        "max_req_input_len",
        "max_total_num_tokens",
        "startup_time",
        "status",
        "version",
    }
