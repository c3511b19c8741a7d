"""Twelve answers of which nine say 200 and four are clean: every failure by its name, and the cell is void."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kit.checks import CellState, Code, Severity
from kit.load import Exchange, Prompt, to_record
from kit.records import Outcome, RequestRecord, RunFacts
from kit.verdict import judge
from tests.builders import build_run, build_spec
from tests.field.inputs import objects, rows

ROWS, WINDOW = rows("F07", "requests.jsonl"), objects("F07", "window.json")
NS = 1_000_000_000
RIGHT = {
    3: Outcome.EMPTY,
    4: Outcome.STREAM_ERROR,
    5: Outcome.HTTP_ERROR,
    6: Outcome.HTTP_ERROR,
    8: Outcome.ABORTED,
    9: Outcome.TIMEOUT,
}


def event(row: dict[str, Any], tokens: int, *, finish: Any) -> bytes:
    """A cumulative event; a text that stays empty is one token over and over, which decodes to nothing."""
    ids = [0] * tokens if row.get("text") == "" else [100 * row["id"] + at for at in range(tokens)]
    finish = {"type": finish, "length": tokens} if isinstance(finish, str) else finish
    meta = {"completion_tokens": tokens, "prompt_tokens": 9, "cached_tokens": 0, "finish_reason": finish}
    return b"data: %b\n\n" % orjson.dumps({"text": row.get("text", "x"), "output_ids": ids, "meta_info": meta})


def body(row: dict[str, Any]) -> bytes:
    """The bytes that such an answer has."""
    if row["http"] != 200:
        return str(row.get("body", "")).encode()
    tokens = row["completion_tokens"]
    parts = [event(row, at, finish=None) for at in (1, tokens // 2) if 0 < at < tokens]
    if "stream_error" in row:
        return b"".join(parts) + b"data: " + orjson.dumps({"error": row["stream_error"]}) + b"\n\n"
    return b"".join(parts) + event(row, tokens, finish=row["finish"]) + b"data: [DONE]\n\n"


def record(row: dict[str, Any]) -> RequestRecord:
    """What the load generator makes of it."""
    timed_out = row.get("client_error") == "TimeoutError"
    end = round(row["e2e_s"] * NS)
    exchange = Exchange(
        f"r{row['id']}",
        ended_ns=end,
        status=row["http"],
        pieces=[] if timed_out else [(end, body(row))],
        broken=Outcome.TIMEOUT if timed_out else None,
        error="TimeoutError" if timed_out else None,
    )
    prompt = Prompt(f"p{row['id']}", "chat", "Go on.", WINDOW["max_new_tokens"])
    return to_record(exchange, prompt, repetition=0, index=row["id"], speculative=False)


def point(requests: list[RequestRecord]) -> RunFacts:
    """A run of one cell that holds exactly these requests."""
    spec = build_spec(arms=[{"kind": "baseline", "name": "baseline"}], load={"concurrency": [1]}, design={"blocks": 1})
    facts = build_run(spec)
    repetition = facts.repetitions[0]
    placed, begun = [], 0
    for one in requests:  # one after the other
        later = replace(
            one,
            repetition=repetition.repetition,
            sent_ns=begun,
            ended_ns=begun + one.ended_ns,
            first_token_ns=None if one.first_token_ns is None else begun + one.first_token_ns,
            chunk_ns=begun + one.chunk_ns,
        )
        placed.append(later)
        begun = later.ended_ns
    return replace(facts, requests=tuple(placed), repetitions=(replace(repetition, started_ns=0, ended_ns=begun),))


def test_every_answer_has_its_class() -> None:
    assert len(ROWS) == WINDOW["requested"] == 12
    outcomes = {row["id"]: record(row).outcome for row in ROWS}
    assert outcomes == {row["id"]: RIGHT.get(row["id"], Outcome.OK) for row in ROWS}


def test_a_failure_without_words_gets_some() -> None:
    by_id = {row["id"]: record(row) for row in ROWS}
    assert (by_id[6].status, by_id[6].error) == (500, "empty body")
    assert by_id[5].status == 503
    assert "InternalServerError" in (by_id[4].error or "")


def test_the_cell_is_void_with_the_count_of_each_kind_and_keeps_every_row() -> None:
    verdict = judge(point([record(row) for row in ROWS]))
    (cell,) = verdict.doubts.cells
    (failed,) = (one for one in verdict.doubts.doubts if one.code is Code.FAILED_REQUESTS)
    assert (cell.state, failed.severity) == (CellState.INVALID, Severity.INVALID)
    assert failed.message.startswith("6 of 12 requests failed (")
    (result,) = verdict.speed.cells
    counted = {each.outcome: each.count for each in result.outcomes}
    assert counted == Counter(record(row).outcome for row in ROWS)
    assert result.requests == 12


def test_answers_that_came_in_one_piece_have_no_time_per_token() -> None:
    (result,) = judge(point([record(row) for row in ROWS])).speed.cells
    assert (result.tpot_s.n, result.ttft_s.n) == (0, 12 - len(RIGHT))


def test_only_clean_answers_are_in_tokens_and_latencies() -> None:
    (result,) = judge(point([record(row) for row in ROWS])).speed.cells
    clean = [row for row in ROWS if row["id"] not in RIGHT]
    assert result.output_tokens == sum(row["completion_tokens"] for row in clean)
    assert result.e2e_latency_s.n == len(clean)
    named = [row["completion_tokens"] for row in clean if row["id"] in (1, 2, 10, 11)]
    assert sum(named) / WINDOW["duration_s"] == pytest.approx(84.2)


def test_the_billed_answer_without_text_is_a_loop_and_is_shown() -> None:
    repeated = [record(row) for row in ROWS if row["id"] == 12]
    doubts = judge(point(repeated)).doubts.doubts
    (loop,) = (one for one in doubts if one.code is Code.LOOPING_OUTPUTS)
    assert "1 of 1 outputs of baseline end in a loop (for instance a cycle of 1 tokens over 256 of 256" in loop.message


def test_tokens_without_text_are_suspicious_and_void_the_cell_above_the_limit() -> None:
    doubts = judge(point([record(row) for row in ROWS])).doubts.doubts
    (empty,) = (one for one in doubts if one.code is Code.EMPTY_TEXTS)
    assert (empty.severity, empty.message) == (
        Severity.INVALID,
        "suspicious: 1 of 12 answers count tokens and have an empty text; the limit is 1.0%",
    )
    good, bad = (next(row for row in ROWS if row["id"] == id_) for id_ in (1, 12))
    among = [record((bad if at == 0 else good) | {"id": at}) for at in range(100)]
    (shown,) = (one for one in judge(point(among)).doubts.doubts if one.code is Code.EMPTY_TEXTS)
    assert shown.severity is Severity.DOUBT


def test_no_answer_is_ok_after_a_retry_because_there_are_none() -> None:
    doubts = judge(point([record(row) for row in ROWS])).doubts.doubts
    (failed,) = (one for one in doubts if one.code is Code.FAILED_REQUESTS)
    assert "a failed request is never retried" in failed.hint


@pytest.mark.parametrize(
    ("failures", "state"), [(1, Severity.DOUBT), (2, Severity.INVALID)], ids=["at the limit", "above it"]
)
def test_the_limit_of_the_spec_decides_and_fewer_failures_are_shown(failures: int, state: Severity) -> None:
    good = next(row for row in ROWS if row["id"] == 1)
    bad = next(row for row in ROWS if row["id"] == 6)
    requests = [record((bad if at < failures else good) | {"id": at}) for at in range(100)]
    doubts = judge(point(requests)).doubts.doubts
    (failed,) = (one for one in doubts if one.code is Code.FAILED_REQUESTS)
    assert (failed.severity, failed.message.partition(" (")[0]) == (state, f"{failures} of 100 requests failed")
