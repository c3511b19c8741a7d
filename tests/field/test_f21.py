"""A sampling parameter under another server's name, and sampling that a seed does not make repeatable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kit import contract
from kit.diagnosis import Cause, diagnose, diagnose_requests
from kit.load import Exchange, Prompt, to_record
from kit.records import Outcome, RequestRecord
from kit.sglang import generate_payload
from kit.stats import LosslessWord
from kit.verdict import judge
from tests.builders import build_run, build_spec, edit_requests
from tests.field.inputs import refusal, rows

CASES = rows("F21", "http.jsonl")
A, B, C = (next(row for row in CASES if row["case"] == case) for case in "abc")
SEEDED = [row for row in CASES if row["case"] == "d"]
NATIVE = [A, B]

# More names from elsewhere, each with SGLang's own.
FOREIGN = {
    "seed": "sampling_seed",
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "temprature": "temperature",
}


def answered(row: dict[str, Any]) -> RequestRecord:
    exchange = Exchange("r0", sent_ns=1, ended_ns=9, status=row["status"], pieces=[(5, row["body"].encode())])
    return to_record(exchange, Prompt("p0", "chat", "p", 64), repetition=0, index=0, speculative=True)


@pytest.mark.parametrize("version", contract.versions())
@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row["case"])
def test_the_request_is_refused_before_it_is_sent_by_the_parameters_name(row: dict[str, Any], version: str) -> None:
    (problem,) = contract.load(version).check_request(row["request"])
    assert (problem.field, problem.suggestion) == ("sampling_params.seed", "sampling_seed")


@pytest.mark.parametrize("version", contract.versions())
@pytest.mark.parametrize(("foreign", "own"), FOREIGN.items())
def test_every_name_from_elsewhere_is_refused_with_sglangs_own(foreign: str, own: str, version: str) -> None:
    request = {"text": "p", "sampling_params": {"temperature": 0.7, foreign: 1}}
    (problem,) = contract.load(version).check_request(request)
    assert (problem.field, problem.suggestion) == (f"sampling_params.{foreign}", own)


@pytest.mark.parametrize("version", contract.versions())
def test_the_right_name_is_taken(version: str) -> None:
    assert contract.load(version).check_request({"text": "p", **SEEDED[0]["request"]}) == ()


def test_a_spec_that_asks_for_an_unknown_parameter_is_refused_and_not_run_without_it() -> None:
    workload = build_spec().workload.model_dump(mode="json")
    assert "sampling_seed" in refusal(workload=workload | {"sampling_seed": 7})
    assert "top_p" in refusal(workload=workload | {"top_p": 0.9})


def test_the_measured_request_holds_nothing_that_is_dropped_in_silence() -> None:
    payload = generate_payload("p", rid="r", max_new_tokens=64, workload=build_spec().workload)
    assert all(contract.load(version).check_request(payload) == () for version in contract.versions())


@pytest.mark.parametrize(("row", "outcome"), [(A, Outcome.HTTP_ERROR), (B, Outcome.CUT)], ids=["a", "b"])
def test_an_empty_500_and_a_cut_200_are_failures_and_no_answers_of_no_token(
    row: dict[str, Any], outcome: Outcome
) -> None:
    record = answered(row)
    assert (record.outcome, record.completion_tokens) == (outcome, None)
    assert record.error in {"empty body", "the stream ended without a final chunk"}


@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row["case"])
def test_the_servers_log_names_the_parameter_of_a_failed_request(row: dict[str, Any]) -> None:
    found = diagnose(row["server_log"], names=contract.load("0.5.23"))
    assert found.cause is Cause.REQUEST_FAILED
    assert "seed is no sampling parameter" in found.title
    assert found.advice.startswith("SGLang calls seed sampling_seed; ")


def test_the_log_of_a_whole_server_names_every_foreign_parameter() -> None:
    header = "[2026-02-01 09:00:{:02d}] Exception in ASGI application\nTraceback (most recent call last):\n  File x\n"
    log = "".join(
        header.format(at) + f"TypeError: Unexpected keyword argument '{name}'\n" for at, name in enumerate(FOREIGN)
    )
    told = diagnose_requests(log, after=0, upto=log.count("\n"))
    assert [one.evidence.split("'")[1] for one in told] == list(FOREIGN)
    assert diagnose(log).cause is Cause.REQUEST_FAILED


def test_an_endpoint_that_takes_the_name_shows_no_failure() -> None:
    assert (C["status"], C["completion_tokens"]) == (200, C["request"]["max_tokens"])
    assert diagnose(C["server_log"]).cause is Cause.NONE


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_unrepeatable_sampling_is_no_violation_and_a_seed_proves_nothing(temperature: float) -> None:
    texts = {arm: [row["sha"] for row in SEEDED if row["arm"] == arm] for arm in ("none", "k3")}
    assert (len(set(texts["none"])), len(set(texts["k3"]))) == (1, 3)

    def sampled(request: RequestRecord) -> RequestRecord:
        sha = texts["k3"][request.repetition % 3]
        changed = request.output_ids + np.frombuffer(sha.encode(), np.uint8).sum()
        return replace(request, output_ids=changed)

    facts = build_run(build_spec(workload={"temperature": temperature}))
    section = judge(edit_requests(facts, sampled, arm="eagle3_k3")).losslessness
    rows_of = {arm: [row for row in section.rows if row.outputs.arm == arm] for arm in ("eagle3_k1", "eagle3_k3")}
    assert not section.greedy
    assert all(row.outputs.divergences for row in rows_of["eagle3_k3"])
    for row in (*rows_of["eagle3_k1"], *rows_of["eagle3_k3"]):
        assert row.word is LosslessWord.UNRESOLVED
        assert row.reason == "sampled outputs differ by chance; only greedy decoding can be compared token by token"
