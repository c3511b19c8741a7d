"""Client, server and trace count the same requests, tokens and rounds, or the difference is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pytest

from kit.analysis import Analysis, analyse
from kit.records import RequestRecord, Rounds, RunFacts, Trace
from tests.builders import edit_requests, shared_run

Change = Callable[[RequestRecord], RequestRecord]


def failures(analysis: Analysis) -> dict[str, int]:
    found: dict[str, int] = {}
    for identities in analysis.identities:
        for failure in identities.failures:
            found[failure.identity] = found.get(failure.identity, 0) + failure.count
    return found


def rows_where(facts: RunFacts, keep: npt.NDArray[np.bool_]) -> RunFacts:
    rounds = facts.trace.rounds
    kept = Rounds(*(getattr(rounds, each.name)[keep] for each in fields(Rounds)))
    return replace(facts, trace=replace(facts.trace, rounds=kept))


def test_a_sound_run_breaks_no_identity_and_is_reproduced_whole() -> None:
    analysis = analyse(shared_run())
    assert failures(analysis) == {}
    assert all(books.exact == books.requests for books in analysis.reconciliation)
    assert all((health.gaps, health.reversals) == (0, 0) for health in analysis.traces)


@pytest.mark.parametrize(
    ("change", "identity"),
    [
        (lambda r: replace(r, output_ids=r.output_ids[:-1]), "output ids"),
        (lambda r: replace(r, chunk_tokens=r.chunk_tokens + 1), "streamed tokens"),
        (lambda r: replace(r, verify_rounds=(r.verify_rounds or 0) + 1), "verify rounds"),
        (lambda r: replace(r, correct_drafts=(r.correct_drafts or 0) + 1), "accepted drafts"),
        (lambda r: replace(r, completion_tokens=(r.completion_tokens or 0) + 9), "overshoot"),
        (lambda r: replace(r, histogram=None), "histogram"),
        (lambda r: replace(r, rid="same"), "request id"),
    ],
)
def test_a_broken_identity_is_named(change: Change, identity: str) -> None:
    found = failures(analyse(edit_requests(shared_run(), change, arm="eagle3_k3")))
    assert identity in found


def test_a_histogram_deeper_than_the_arm_is_an_overshoot() -> None:
    def deepen(request: RequestRecord) -> RequestRecord:
        return replace(request, histogram=(*(request.histogram or ()), 0, 0, 0, 1))

    assert "overshoot" in failures(analyse(edit_requests(shared_run(), deepen, arm="eagle3_k3", first=1)))


def test_requests_that_do_not_add_up_are_dropped_from_acceptance_and_counted() -> None:
    def inflate(request: RequestRecord) -> RequestRecord:
        return replace(request, verify_rounds=(request.verify_rounds or 0) + 1)

    analysis = analyse(edit_requests(shared_run(), inflate, arm="eagle3_k3", first=3))
    dropped = [a for a in analysis.acceptance if a.dropped]
    assert [(a.arm, a.dropped, a.dropped_reasons) for a in dropped] == [
        ("eagle3_k3", 3, ("histogram and verify rounds disagree: 3",))
    ]


def test_rows_missing_from_the_trace_make_their_requests_untrusted() -> None:
    facts = shared_run()
    first = facts.trace.rids.index(next(r.rid for r in facts.requests if r.histogram))
    at = np.flatnonzero(facts.trace.rounds.rid == first)
    keep = np.ones(len(facts.trace.rounds), bool)
    keep[at[0]] = False
    analysis = analyse(rows_where(facts, keep))
    reasons = [reason for books in analysis.reconciliation for reason in books.reasons]
    assert [(r.reason, r.count) for r in reasons] == [("rows are missing from the trace", 1)]
    assert failures(analysis) == {"trace rows": 1}


def test_a_request_that_the_trace_never_saw_is_named_so() -> None:
    facts = shared_run()
    gone = facts.trace.rounds.rid == facts.trace.rids.index(facts.requests[0].rid)
    reasons = [r.reason for books in analyse(rows_where(facts, ~gone)).reconciliation for r in books.reasons]
    assert reasons == ["no row in the trace"]


def test_ghost_rows_and_strangers_change_nothing() -> None:
    facts = shared_run()
    rounds, iterations = facts.trace.rounds, facts.trace.iterations
    ghosts = Rounds(
        np.append(rounds.iteration, [5, 6]),
        np.append(rounds.rid, [0, len(facts.trace.rids)]),
        np.append(rounds.tokens_before, [900, 1]),
        np.append(rounds.accepted, [1, 1]),
        np.append(rounds.ghost, [True, False]),
        np.append(rounds.retracted, [False, False]),
    )
    haunted = replace(facts, trace=Trace(iterations, ghosts, (*facts.trace.rids, "HEALTH_CHECK_1")))
    analysis = analyse(haunted)
    assert failures(analysis) == {}
    assert sum(books.unmatched_rids for books in analysis.reconciliation) == 1


def test_a_warm_up_under_the_same_request_id_is_left_out() -> None:
    facts = shared_run()
    rounds = facts.trace.rounds
    mine = np.flatnonzero(rounds.rid == 0)
    columns = (getattr(rounds, each.name) for each in fields(Rounds))
    again = Rounds(*(np.concatenate([column[mine], column]) for column in columns))
    analysis = analyse(replace(facts, trace=replace(facts.trace, rounds=again)))
    assert failures(analysis) == {}
    assert all(books.exact == books.requests for books in analysis.reconciliation)


def test_gaps_and_clocks_that_run_back_are_counted_per_launch() -> None:
    facts = shared_run()
    its = facts.trace.iterations
    second = np.flatnonzero(its.launch == 1)
    number, ready = its.number.copy(), its.ready_ns.copy()
    number[second[10] :] += np.where(its.launch[second[10] :] == 1, 3, 0)
    ready[second[20]] = ready[second[18]]
    broken = replace(its, number=number, ready_ns=ready)
    health = analyse(replace(facts, trace=replace(facts.trace, iterations=broken))).traces
    assert [(h.gaps, h.reversals) for h in health if h.launch == 1] == [(3, 1)]
    assert all(h.gaps == 0 for h in health if h.launch != 1)
