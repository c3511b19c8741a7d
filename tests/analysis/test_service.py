"""Service: what counts as good, when a server has fallen behind, and what is said of either."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kit.analysis.index import Index
from kit.analysis.service import fell_behind, is_good, service_levels
from kit.records import Outcome, Phase, RequestRecord, Role, RunFacts
from kit.report.sections.service import service_view
from kit.spec import Limits
from kit.verdict import judge
from tests.builders import build_run, build_spec, edit_requests

S = 1_000_000_000
LIMITS = {"ttft_s": 0.2, "tpot_s": 0.1, "e2e_s": 2.0}


def record(at_s: float = 0.0, *, took_s: float = 1.0, ttft_s: float = 0.1, tokens: int = 11) -> RequestRecord:
    sent = round(at_s * S)
    chunks = np.linspace(sent + ttft_s * S, sent + took_s * S, tokens).astype(np.int64)
    return RequestRecord(
        repetition=1,
        index=0,
        rid="r",
        prompt="p",
        prompt_class="chat",
        max_new_tokens=tokens,
        sent_ns=sent,
        ended_ns=sent + round(took_s * S),
        outcome=Outcome.OK,
        first_token_ns=int(chunks[0]),
        completion_tokens=tokens,
        retractions=0,
        chunk_ns=chunks,
        chunk_tokens=np.ones(tokens, np.int64),
    )


@pytest.mark.parametrize(
    ("request_", "good"),
    [
        (record(), True),
        (record(ttft_s=0.3), False),
        (record(took_s=1.5), False),  # 0.14 s a token
        (record(took_s=2.5, tokens=101), False),  # too long as a whole
        (record(took_s=0.1, tokens=1), True),  # no time per token to keep
        (replace(record(), outcome=Outcome.TIMEOUT), False),
    ],
)
def test_a_good_request_ends_well_and_keeps_every_limit(request_: RequestRecord, good: bool) -> None:
    assert is_good(request_, Limits(**LIMITS)) is good


def test_a_limit_that_is_not_stated_is_not_asked_for() -> None:
    assert is_good(record(took_s=60.0), Limits(ttft_s=0.2))


def test_a_server_that_ends_fewer_than_arrive_has_fallen_behind() -> None:
    due = np.arange(100) / 10
    keeps_up = [record(at, took_s=0.5) for at in due]
    queues = [record(at, took_s=0.5 + at) for at in due]
    assert not fell_behind(keeps_up)
    assert fell_behind(queues)


def test_a_few_unfinished_requests_are_chance() -> None:
    assert not fell_behind([record(at, took_s=1.0) for at in np.arange(20) / 4])


def with_rates(facts: RunFacts, *, growing: bool) -> RunFacts:
    """The run with one cell more a launch, whose requests arrived by the clock."""
    cells, repetitions, requests = [], [], []
    for launch in facts.launches:
        model = next(cell for cell in facts.cells if cell.launch == launch.launch)
        timed = next(rep for rep in facts.repetitions if rep.cell == model.cell and rep.phase is Phase.TIMED)
        cell = replace(model, cell=90_000 + launch.launch, concurrency=0, position=9)
        number = cell.cell * 10 + 1
        cells.append(cell)
        repetitions.append(
            replace(timed, repetition=number, cell=cell.cell, phase=Phase.OFFERED, client={"per_second": 10.0})
        )
        requests += [
            replace(record(at, took_s=0.5 + at * growing), repetition=number, index=n, rid=f"R{launch.launch}-{n}")
            for n, at in enumerate(np.arange(100) / 10)
        ]
    return replace(
        facts,
        cells=(*facts.cells, *cells),
        repetitions=(*facts.repetitions, *repetitions),
        requests=(*facts.requests, *requests),
    )


@pytest.fixture(scope="module")
def facts() -> RunFacts:
    return build_run(build_spec(load={"limits": LIMITS, "arrival": {"rates": [10.0], "requests": 100}}))


def test_a_rate_that_the_server_keeps_up_with_has_latencies_and_goodput_over_launches(facts: RunFacts) -> None:
    levels = service_levels(Index(with_rates(facts, growing=False)), unfit={})
    offered = [level for level in levels if level.per_second is not None]
    assert {level.arm for level in offered} == {launch.arm for launch in facts.launches}
    for level in offered:
        assert (level.per_second, level.saturated, level.launches, level.requests) == (10.0, 0, 3, 300)
        assert level.ttft_s.point == pytest.approx(0.1)
        assert level.e2e_latency_s.point == pytest.approx(0.5)
        assert level.within.point == pytest.approx(1.0)
        assert level.goodput.point == pytest.approx(100 / 10.4)
        assert level.goodput.interval is not None


def test_a_rate_that_it_cannot_keep_up_with_is_called_saturated_and_not_averaged(facts: RunFacts) -> None:
    levels = service_levels(Index(with_rates(facts, growing=True)), unfit={})
    for level in (level for level in levels if level.per_second is not None):
        assert level.saturated == 3
        for estimate in (level.ttft_s, level.ttft_p99_s, level.tpot_s, level.e2e_p99_s, level.within, level.goodput):
            assert (estimate.point, estimate.reason) == (None, "saturated in 3 of 3 launches")
        assert level.completed_per_s.point is not None


def test_closed_loops_have_goodput_where_limits_are_stated_and_cells_that_may_not_enter_do_not(facts: RunFacts) -> None:
    index = Index(facts)
    bad = next(cell for cell in facts.cells if index.launches[cell.launch].role is Role.MEASURE)
    levels = service_levels(index, unfit={bad.cell: "too many failed"})
    arm = index.launches[bad.launch].arm
    hit = next(level for level in levels if (level.arm, level.concurrency) == (arm, bad.concurrency))
    assert (hit.launches, hit.left_out) == (2, ("too many failed",))
    assert hit.goodput.interval is None
    assert "2 of the 3 launches" in (hit.goodput.reason or "")


def test_without_limits_or_rates_there_is_nothing_to_say() -> None:
    assert service_levels(Index(build_run(build_spec())), unfit={}) == ()


def test_the_verdict_leaves_out_a_rate_whose_requests_failed_or_whose_client_was_late(facts: RunFacts) -> None:
    run = with_rates(facts, growing=False)
    first, second = (rep for rep in run.repetitions[-2:])
    late = replace(second, client={**second.client, "idle_share": 0.2})
    run = replace(
        run,
        repetitions=(*run.repetitions[:-1], late),
        requests=tuple(
            replace(one, outcome=Outcome.EMPTY) if one.repetition == first.repetition and one.index < 5 else one
            for one in run.requests
        ),
    )
    verdict = judge(run)
    left_out = [reason for level in verdict.service.levels for reason in level.left_out if level.per_second]
    assert sorted(left_out) == ["5 of 100 requests failed, more than 1%", "the load generator was at its limit"]
    assert verdict.service.limits.startswith("time to first token at most 0.2 s, ")
    view = service_view(verdict.service.levels, limits=verdict.service.limits)
    assert "Saturated" in view.offered
    assert "Within the limits" in view.closed
    assert len(view.left_out) == 2


def left_out_of_rates(run: RunFacts) -> list[str]:
    return [reason for level in judge(run).service.levels if level.per_second for reason in level.left_out]


def test_a_rate_at_which_requests_were_retracted_or_waited_for_the_servers_own_limit_is_left_out(
    facts: RunFacts,
) -> None:
    run = with_rates(facts, growing=False)
    assert left_out_of_rates(run) == []
    number = run.repetitions[-1].repetition
    retracted = tuple(
        replace(one, retractions=1) if one.repetition == number and one.index < 3 else one for one in run.requests
    )
    assert left_out_of_rates(replace(run, requests=retracted)) == [
        "3 of 100 requests were retracted: the KV pool was full"
    ]
    crowded = tuple(
        replace(one, ended_ns=one.ended_ns + S) if one.repetition == number else one for one in run.requests
    )
    assert left_out_of_rates(replace(run, requests=crowded)) == [
        "up to 15 requests in flight, and the server runs at most 8"
    ]


def test_a_saturated_rate_stays_saturated_however_many_queued(facts: RunFacts) -> None:
    assert left_out_of_rates(with_rates(facts, growing=True)) == []


def test_a_doubt_about_a_launch_holds_for_its_rates(facts: RunFacts) -> None:
    run = with_rates(facts, growing=False)
    other = edit_requests(run, lambda one: replace(one, prompt_tokens=(one.prompt_tokens or 0) + 1), arm="eagle3_k3")
    assert set(left_out_of_rates(other)) == {"launch not valid (inputs_differ)"}
