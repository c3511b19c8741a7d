"""A chunk brings several tokens: the gap between chunks is no time per token, and no average makes it one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kit.analysis import CellResult, analyse
from kit.records import RequestRecord, RunFacts
from tests.builders import build_run, build_spec, eagle3
from tests.field.inputs import rows

EVENTS = rows("F05", "stream.jsonl")
MS = 1_000_000


def streamed(rid: str, *, tail_ms: float = 0.0) -> RequestRecord:
    """The request as its chunks came, on a record that is otherwise sound."""
    mine = [event for event in EVENTS if event["rid"] == rid]
    stamps = np.array([round(event["t_ms"] * MS) for event in mine], np.int64)
    totals = [0, *(event["completion_tokens"] for event in mine)]
    blank = run().requests[0]
    return replace(
        blank,
        index="ab".index(rid),
        rid=rid,
        sent_ns=0,
        first_token_ns=int(stamps[0]),
        ended_ns=int(stamps[-1] + tail_ms * MS),
        completion_tokens=totals[-1],
        chunk_ns=stamps,
        chunk_tokens=np.array([after - before for before, after in pairwise(totals)], np.int64),
        output_ids=np.arange(totals[-1]),
    )


def run() -> RunFacts:
    """One launch of one arm that speculates at concurrency 2."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "baseline"}, eagle3(3)],
        load={"concurrency": [2], "waves": 1, "min_requests": 2},
        design={"blocks": 1},
    )
    return build_run(spec)


def cell(*requests: RequestRecord) -> CellResult:
    """What analysis makes of these requests as the only ones of their cell."""
    facts = run()
    wanted = facts.requests[0].repetition
    others = [request for request in facts.requests if request.repetition != wanted]
    changed = replace(facts, requests=(*(replace(one, repetition=wanted) for one in requests), *others))
    (found,) = (one for one in analyse(changed).cells if one.cell == wanted)
    return found


@pytest.mark.parametrize(("rid", "tpot_ms", "tokens_a_chunk"), [("a", 3.346, 2.60), ("b", 4.833, 1.80)])
def test_time_per_token_and_gap_between_chunks_are_two_figures(rid: str, tpot_ms: float, tokens_a_chunk: float) -> None:
    request = streamed(rid)
    found = cell(request)
    assert (found.tpot_s.p50 or 0) * 1000 == pytest.approx(tpot_ms, abs=5e-4)
    assert (found.chunk_gap_s.mean or 0) * 1000 == pytest.approx(8.70, abs=5e-3)
    assert float(np.mean(request.chunk_tokens[1:])) == pytest.approx(tokens_a_chunk, abs=5e-3)


def test_together_they_are_not_the_gap_over_a_common_acceptance_length() -> None:
    requests = (streamed("a"), streamed("b"))
    found = cell(*requests)
    gap = (found.chunk_gap_s.mean or 0) * 1000
    steps = sum((request.completion_tokens or 0) - 1 for request in requests)
    pooled = sum(request.ended_ns - (request.first_token_ns or 0) for request in requests) / steps / MS
    assert (found.tpot_s.n, found.chunk_gap_s.n) == (2, 30)
    assert pooled == pytest.approx(3.955, abs=5e-4)
    assert 1000 / pooled == pytest.approx(252.9, abs=0.1)
    assert 1000 / gap == pytest.approx(114.9, abs=0.1)
    by_division = [gap / (float(np.mean([np.mean(one.chunk_tokens[1:]) for one in requests])))] * 2
    assert [found.tpot_s.p90 * 1000 if found.tpot_s.p90 else 0] != pytest.approx(by_division[:1], rel=0.05)


def test_tokens_that_arrive_together_share_a_stamp_and_change_no_time_per_token() -> None:
    request = streamed("a")
    merged = replace(
        request,
        chunk_ns=np.concatenate([request.chunk_ns[:1], request.chunk_ns[2::2], request.chunk_ns[-1:]]),
        chunk_tokens=np.concatenate(
            [
                request.chunk_tokens[:1],
                request.chunk_tokens[1:-1:2] + request.chunk_tokens[2::2],
                request.chunk_tokens[-1:],
            ]
        ),
    )
    assert int(merged.chunk_tokens.sum()) == 40
    assert cell(merged).tpot_s == cell(request).tpot_s
    assert (cell(merged).chunk_gap_s.mean or 0) > 1.8 * (cell(request).chunk_gap_s.mean or 0)


def test_an_answer_of_one_chunk_has_no_time_per_token_and_no_gap() -> None:
    one = replace(
        streamed("a"),
        completion_tokens=1,
        ended_ns=41 * MS,
        chunk_ns=np.array([41 * MS]),
        chunk_tokens=np.array([1]),
        output_ids=np.arange(1),
    )
    found = cell(one)
    assert (found.tpot_s.n, found.chunk_gap_s.n) == (0, 0)
    assert found.tpot_s.p50 is None
