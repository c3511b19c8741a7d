"""Is the trace there, whole, and the same story as the responses?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Evidence, Severity, evidence_of
from kit.checks import trace as checks
from kit.records import Launch, RequestRecord, RunFacts, Trace
from tests.builders import edit_launches, edit_requests, shared_run

Check = Callable[[Evidence], Iterator[Doubt]]


def found(check: Check, facts: RunFacts) -> list[tuple[Code, Severity]]:
    return [(d.code, d.severity) for d in check(evidence_of(facts, analyse(facts)))]


@pytest.mark.parametrize(
    "check", [checks.trace_missing, checks.trace_loss, checks.trace_untrusted], ids=lambda check: check.__name__
)
def test_a_sound_run_raises_no_doubt(check: Check) -> None:
    assert found(check, shared_run()) == []


def test_launches_without_a_trace_are_unknown() -> None:
    facts = replace(shared_run(), trace=Trace.empty())
    assert found(checks.trace_missing, facts) == [(Code.TRACE_MISSING, Severity.UNKNOWN)] * len(facts.launches)
    assert found(checks.trace_untrusted, facts) == []  # one cause is enough


def test_a_gap_in_the_ids_voids_the_launch() -> None:
    facts = shared_run()
    its = facts.trace.iterations
    holed = replace(its, number=its.number + (its.number > 7))
    assert set(found(checks.trace_loss, replace(facts, trace=replace(facts.trace, iterations=holed)))) == {
        (Code.TRACE_LOSS, Severity.INVALID)
    }


def test_a_clock_that_runs_back_voids_the_launch() -> None:
    facts = shared_run()
    its = facts.trace.iterations
    ready = its.ready_ns.copy()
    ready[5] = 0
    broken = replace(facts, trace=replace(facts.trace, iterations=replace(its, ready_ns=ready)))
    assert found(checks.trace_loss, broken) == [(Code.TRACE_LOSS, Severity.INVALID)]


def test_records_that_the_reader_missed_void_the_run() -> None:
    facts = shared_run()
    assert found(checks.trace_loss, replace(facts, trace=replace(facts.trace, lost=2))) == [
        (Code.TRACE_LOSS, Severity.INVALID)
    ]


def test_records_that_the_writer_dropped_void_the_launch() -> None:
    dropping = edit_launches(
        shared_run(),
        lambda one: replace(one, server_info={**(one.server_info or {}), "speckit_trace": {"dropped": 4}}),
        arm="baseline",
    )
    assert set(found(checks.trace_loss, dropping)) == {(Code.TRACE_LOSS, Severity.INVALID)}


@pytest.mark.parametrize(("requests", "severity"), [(1, Severity.DOUBT), (10, Severity.INVALID)])
def test_responses_that_the_trace_does_not_reproduce_void_above_five_percent(requests: int, severity: Severity) -> None:
    def swap(request: RequestRecord) -> RequestRecord:
        """The same rounds and tokens, in other bins."""
        one, two, *rest = request.histogram or ()
        return replace(request, histogram=(one + 1, two - 2, *(rest or (0,))[:1], *rest[1:]))

    facts = edit_requests(shared_run(), swap, arm="eagle3_k1", first=requests)
    assert found(checks.trace_untrusted, facts) == [(Code.TRACE_UNTRUSTED, severity)]


def test_a_trace_of_sources_that_nobody_reviewed_is_a_doubt_about_its_launch() -> None:
    def overridden(launch: Launch) -> Launch:
        block = {"version": "1", "sha": "0" * 64, "reviewed_as": None, "override": True}
        return replace(launch, server_info={**(launch.server_info or {}), "speckit_trace": block})

    facts = edit_launches(shared_run(), overridden, arm="baseline")
    assert set(found(checks.trace_unreviewed, facts)) == {(Code.TRACE_UNREVIEWED, Severity.DOUBT)}
    assert found(checks.trace_unreviewed, shared_run()) == []
