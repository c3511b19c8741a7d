"""Each check of a cell fires on what it is for, and on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Evidence, Severity, evidence_of
from kit.checks import cell as checks
from kit.checks import client as client_checks
from kit.records import Outcome, RequestRecord, RunFacts
from tests.builders import build_run, build_spec, edit_launches, edit_requests, shared_run

Bools = npt.NDArray[np.bool_]
Check = Callable[[Evidence], Iterator[Doubt]]

ALL = (
    checks.failed_requests,
    checks.nan_logits,
    checks.cached_tokens,
    checks.retraction,
    checks.queueing,
    checks.eager_decode,
    checks.dead_draft,
    checks.steady_window,
    checks.few_waves,
    checks.identity_failed,
    client_checks.client_limited,
    client_checks.late_standin,
)


def found(check: Check, facts: RunFacts) -> list[Doubt]:
    return list(check(evidence_of(facts, analyse(facts))))


def client(facts: RunFacts, **health: Any) -> RunFacts:
    return replace(facts, repetitions=tuple(replace(r, client=health) for r in facts.repetitions))


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.__name__)
def test_a_sound_run_raises_no_doubt(check: Check) -> None:
    assert found(check, shared_run()) == []


def test_failures_above_the_limit_void_the_cell_and_fewer_are_shown() -> None:
    def fail(request: RequestRecord) -> RequestRecord:
        return replace(request, outcome=Outcome.HTTP_ERROR)

    (doubt,) = found(checks.failed_requests, edit_requests(shared_run(), fail, first=1))
    assert (doubt.code, doubt.severity) == (Code.FAILED_REQUESTS, Severity.INVALID)
    assert "1 http_error" in doubt.message
    assert doubt.hint.startswith("read the launch's log")
    lenient = build_run(build_spec(load={"failure_limit": 0.5}))
    (doubt,) = found(checks.failed_requests, edit_requests(lenient, fail, first=1))
    assert doubt.severity is Severity.DOUBT


def test_nan_logits_void_the_cell() -> None:
    facts = edit_requests(shared_run(), lambda r: replace(r, outcome=Outcome.NAN), first=1)
    assert [(d.code, d.severity) for d in found(checks.nan_logits, facts)] == [(Code.NAN, Severity.INVALID)]


@pytest.mark.parametrize(
    ("check", "field", "code"),
    [(checks.cached_tokens, "cached_tokens", Code.CACHED_TOKENS), (checks.retraction, "retractions", Code.RETRACTION)],
)
def test_a_count_that_must_be_zero_voids_and_one_that_is_absent_is_unknown(
    check: Check, field: str, code: Code
) -> None:
    def put(value: int | None) -> RunFacts:
        return edit_requests(shared_run(), lambda r: replace(r, **{field: value}), first=1)  # type: ignore[arg-type]

    assert [(d.code, d.severity) for d in found(check, put(3))] == [(code, Severity.INVALID)]
    assert [(d.code, d.severity) for d in found(check, put(None))] == [(code, Severity.UNKNOWN)]


def test_a_limit_below_the_concurrency_means_a_queue() -> None:
    tight = edit_launches(
        shared_run(), lambda one: replace(one, server_info={**(one.server_info or {}), "max_running_requests": 3})
    )
    doubts = found(checks.queueing, tight)
    assert {(d.code, d.severity, d.concurrency) for d in doubts} == {(Code.QUEUEING, Severity.INVALID, 4)}


def test_an_unknown_limit_is_unknown() -> None:
    blind = edit_launches(shared_run(), lambda one: replace(one, server_info=None), arm="baseline")
    doubts = found(checks.queueing, blind)
    assert {(d.code, d.severity, d.arm) for d in doubts} == {(Code.QUEUEING_UNKNOWN, Severity.UNKNOWN, "baseline")}


def eager(facts: RunFacts, chosen: Bools) -> RunFacts:
    its = facts.trace.iterations
    return replace(facts, trace=replace(facts.trace, iterations=replace(its, cuda_graph=its.cuda_graph & ~chosen)))


def test_decoding_without_graphs_voids_a_cell_unless_it_was_asked_for() -> None:
    every_tenth = shared_run().trace.iterations.number % 10 == 0
    assert {d.code for d in found(checks.eager_decode, eager(shared_run(), every_tenth))} == {Code.EAGER_DECODE}
    asked = build_run(build_spec(server={"disable_cuda_graph": True}))
    assert found(checks.eager_decode, eager(asked, asked.trace.iterations.number >= 0)) == []


def test_one_eager_iteration_among_hundreds_is_no_doubt() -> None:
    its = shared_run().trace.iterations
    alone = np.flatnonzero((its.batch_size == 1) & (its.draft_tokens < 0))
    assert found(checks.eager_decode, eager(shared_run(), np.arange(len(its)) == alone[50])) == []


def test_a_draft_that_is_never_accepted_is_dead() -> None:
    doubts = found(checks.dead_draft, build_run(acceptance=-1.0))
    assert {(d.code, d.severity) for d in doubts} == {(Code.DEAD_DRAFT, Severity.INVALID)}
    assert {d.arm for d in doubts} == {"eagle3_k1", "eagle3_k3"}


ADAPTIVE = [{"kind": "baseline", "name": "baseline"}, {"kind": "adaptive", "name": "adaptive", "num_steps": 7}]


def test_a_controller_that_drafts_nothing_does_not_make_a_draft_dead() -> None:
    facts = build_run(build_spec(arms=ADAPTIVE), acceptance=-1.0)
    assert {d.arm for d in found(checks.dead_draft, facts)} == {"adaptive"}
    its = facts.trace.iterations
    resting = replace(its, draft_tokens=np.minimum(its.draft_tokens, 1))
    assert found(checks.dead_draft, replace(facts, trace=replace(facts.trace, iterations=resting))) == []


def test_a_refused_window_voids_and_an_unrecorded_one_is_unknown() -> None:
    short = build_run(build_spec(load={"waves": 1, "min_requests": 1}))
    assert {(d.code, d.severity) for d in found(checks.steady_window, short)} == {
        (Code.NO_STEADY_WINDOW, Severity.INVALID)
    }

    def blind(request: RequestRecord) -> RequestRecord:
        return replace(
            request, chunk_ns=request.chunk_ns[:0], chunk_tokens=request.chunk_tokens[:0], first_token_ns=None
        )

    def timeless(request: RequestRecord) -> RequestRecord:
        return replace(blind(request), sent_ns=0, ended_ns=0)

    for edit, code in ((blind, Code.NO_CHUNK_TIMES), (timeless, Code.NO_CLIENT_TIMES)):
        doubts = found(checks.steady_window, edit_requests(shared_run(), edit))
        assert {(d.code, d.severity) for d in doubts} == {(code, Severity.UNKNOWN)}


def test_fewer_than_four_waves_mark_the_cell() -> None:
    doubts = found(checks.few_waves, build_run(build_spec(load={"waves": 3, "min_requests": 1})))
    assert {(d.code, d.severity) for d in doubts} == {(Code.FEW_WAVES, Severity.DOUBT)}
    assert "3.0 waves" in doubts[0].message


def test_a_broken_identity_voids_its_cell_and_names_an_example() -> None:
    facts = edit_requests(shared_run(), lambda r: replace(r, output_ids=r.output_ids[1:]), first=1)
    (doubt,) = found(checks.identity_failed, facts)
    assert (doubt.code, doubt.severity) == (Code.IDENTITY_FAILED, Severity.INVALID)
    assert facts.requests[0].rid in doubt.message


@pytest.mark.parametrize(
    ("health", "severity"),
    [
        ({"cpu_share": 0.95, "loop_lag_s": 0.001}, Severity.INVALID),
        ({"cpu_share": 0.2, "loop_lag_s": 0.5}, Severity.INVALID),
        ({"cpu_share": 0.2}, Severity.UNKNOWN),
        ({}, Severity.UNKNOWN),
    ],
)
def test_a_client_that_cannot_keep_up_voids_and_one_that_kept_no_record_is_unknown(
    health: dict[str, float], severity: Severity
) -> None:
    assert {d.severity for d in found(client_checks.client_limited, client(shared_run(), **health))} == {severity}


def test_one_late_wake_up_that_cannot_matter_is_only_shown() -> None:
    slow = build_run(cost=lambda depth, batch: 1.0)
    doubts = found(client_checks.client_limited, client(slow, cpu_share=0.2, loop_lag_s=0.1))
    assert {(d.code, d.severity) for d in doubts} == {(Code.CLIENT_LIMITED, Severity.DOUBT)}


@pytest.mark.parametrize(("late", "fires"), [(11, True), (10, False)])
def test_more_than_one_in_a_hundred_late_iterations_void_a_simulated_cell(late: int, fires: bool) -> None:
    facts = shared_run()
    *others, last = facts.repetitions
    slow = replace(last, client={**last.client, "standin": {"iterations": 1000, "late": late}})
    doubts = found(client_checks.late_standin, replace(facts, repetitions=(*others, slow)))
    assert [(d.code, d.severity, d.cell) for d in doubts] == [(Code.LATE_STANDIN, Severity.INVALID, last.cell)] * fires


@pytest.mark.parametrize(
    ("health", "expected"),
    [
        ({"loop_lag_s": 0.2, "standin": None}, True),
        ({"loop_lag_s": 0.01, "standin": {"iterations": 100, "late": 5}}, True),
        ({"loop_lag_s": 0.01, "standin": {"iterations": 100, "late": 1}}, False),
        ({"loop_lag_s": 0.01, "idle_share": 0.03}, True),
        ({}, False),
    ],
)
def test_a_pass_is_disturbed_by_the_host_and_by_nothing_else(health: dict[str, Any], expected: bool) -> None:
    timed = replace(shared_run().repetitions[-1], started_ns=0, ended_ns=2_000_000_000, client=health)
    assert client_checks.disturbed(timed, noise_threshold=0.02) is expected


@pytest.mark.parametrize(
    ("health", "words", "severity"),
    [
        ({"idle_share": 0.05}, "went out late by 5.0%", Severity.INVALID),
        ({"idle_share": 0.01}, "", None),
        ({"clock_step_s": 0.2}, "the wall clock was set by 0.200 s", Severity.INVALID),
        ({"fd_headroom": 0, "connections": 12}, "no file descriptor left (12 connections)", Severity.INVALID),
        ({"stamps": "event loop", "loop_lag_p99_s": 0.004}, "late by up to 4.0 ms", Severity.DOUBT),
        ({"stamps": "kernel", "clock_step_s": 0.0, "fd_headroom": 900}, "", None),
    ],
)
def test_what_the_generator_recorded_of_itself_is_held_against_the_cell(
    health: dict[str, Any], words: str, severity: Severity | None
) -> None:
    doubts = found(client_checks.client_limited, client(shared_run(), cpu_share=0.2, loop_lag_s=0.001, **health))
    assert {doubt.severity for doubt in doubts} == ({severity} if severity else set())
    assert all(words in doubt.message for doubt in doubts)
