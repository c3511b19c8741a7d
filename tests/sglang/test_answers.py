"""The stand-in beside the real server: to the same requests, answers of the same status, keys and types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kit.contract import load
from kit.records import Launch, RequestRecord, RunFacts
from kit.runtime import Endpoint, Server
from kit.sglang import broken_counts, launch_flags
from kit.spec import load_spec
from tests.sglang.runs import QUICK, depths_of
from tests.standin.differences import Answer, differences, received
from tests.standin.served import ONE_EACH, served

pytestmark = [pytest.mark.sglang, pytest.mark.slow]

VERSION = "0.5.21"
NULLABLE = load(VERSION).server_fields | {"cached_tokens_details"}
GREEDY = {"temperature": 0, "max_new_tokens": 6, "ignore_eos": True}

# What the stand-in leaves out of `/server_info`, or adds to it, on purpose. It hooks nothing, so nothing is reviewed.
DELIBERATE = {
    *(f"internal_states.speckit_trace.{key} is null instead of str" for key in ("reviewed_as", "sha", "stream")),
    "internal_states.speckit_trace.pid is too much",
    "internal_states.standin is too much",
    "internal_states.startup_time is missing",
}
HOOKS = tuple(f"internal_states.speckit_trace.{part}." for part in ("targets", "witnesses", "packages"))

# Requests of a user who makes mistakes; the answer is that of SGLang without speculation.
REQUESTS: dict[str, dict[str, Any]] = {
    "plain": {"text": "The sea", "sampling_params": GREEDY},
    "streamed": {"text": "The sea", "stream": True, "sampling_params": GREEDY},
    "one token": {"text": "The sea", "sampling_params": GREEDY | {"max_new_tokens": 1}},
    "ids": {"input_ids": [1, 2, 3], "sampling_params": GREEDY},
    "several": {"text": ["The sea", "The sky"], "sampling_params": GREEDY},
    "unknown field": {"text": "The sea", "max_tokens": 6, "sampling_params": GREEDY},
    "unknown parameter": {"text": "The sea", "sampling_params": GREEDY | {"seed": 1}},
    "wrong type": {"text": 5, "sampling_params": GREEDY},
    "wrong value": {"text": "The sea", "sampling_params": GREEDY | {"temperature": -1}},
    "wrong value, streamed": {"text": "The sea", "stream": True, "sampling_params": GREEDY | {"temperature": -1}},
    "no prompt": {"sampling_params": GREEDY},
    "too long": {"input_ids": [1] * 3000, "sampling_params": GREEDY},
}


@pytest.fixture(scope="module")
def real(server: tuple[Server, Endpoint]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server[1].base_url, timeout=300, trust_env=False, limits=ONE_EACH) as client:
        yield client


@pytest.fixture(scope="module")
def standin() -> Iterator[httpx.Client]:
    spec = load_spec(QUICK)
    with served("--version", VERSION, *launch_flags(spec, spec.arm("baseline"))) as client:
        yield client


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_answered_or_refused_in_the_same_way(real: httpx.Client, standin: httpx.Client, name: str) -> None:
    expected, found = (received(client.post("/generate", json=REQUESTS[name])) for client in (real, standin))
    assert set(differences(expected, found, nullable=NULLABLE)) == set()


def test_a_stream_of_an_unknown_parameter_breaks_off_in_both(real: httpx.Client, standin: httpx.Client) -> None:
    for client in (real, standin):
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            client.post("/generate", json=REQUESTS["unknown parameter"] | {"stream": True})


def launch_of(facts: RunFacts, arm: str) -> Launch:
    return next(launch for launch in facts.launches if launch.arm == arm)


def answers(facts: RunFacts, arm: str) -> dict[tuple[str, int], RequestRecord]:
    """The last answer of an arm to each prompt of each cell position."""
    cells = {cell.cell: cell.concurrency for cell in facts.cells if cell.launch == launch_of(facts, arm).launch}
    mine = {one.repetition: cells[one.cell] for one in facts.repetitions if one.cell in cells}
    return {(one.prompt, mine[one.repetition]): one for one in facts.requests if one.repetition in mine}


@pytest.mark.parametrize("arm", ["baseline", "k3", "adaptive"])
def test_a_measured_arm_answers_with_the_same_keys_and_counts_that_add_up(
    facts: RunFacts, simulated: RunFacts, arm: str
) -> None:
    expected, found = answers(facts, arm), answers(simulated, arm)
    assert expected.keys() == found.keys()
    for key, one in expected.items():
        other = found[key]
        assert (one.status, one.finish_reason) == (other.status, other.finish_reason)
        shapes = (Answer(each.status, None, each.meta_info) for each in (one, other))
        assert list(differences(*shapes, nullable=NULLABLE)) == []
        for each in (one, other):
            assert list(broken_counts(each.meta_info or {}, drafts_a_round=3 if arm == "k3" else None)) == []


@pytest.mark.parametrize("arm", ["baseline", "k3", "adaptive"])
def test_a_server_describes_itself_with_the_same_keys(facts: RunFacts, simulated: RunFacts, arm: str) -> None:
    shapes = (Answer(200, None, launch_of(run, arm).server_info) for run in (facts, simulated))
    found = {one for one in differences(*shapes, nullable=NULLABLE) if not one.startswith(HOOKS)}
    assert found == DELIBERATE


def test_both_adapt_on_the_same_ladder(facts: RunFacts, simulated: RunFacts) -> None:
    ladder = set(load(VERSION).ladder)
    for run in (facts, simulated):
        depths = depths_of(run, "adaptive")
        assert len(depths) > 1 and depths <= ladder | {0}
