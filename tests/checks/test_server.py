"""Is it the server that was asked for, configured like the one it is compared with?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Evidence, Severity, evidence_of, trace
from kit.checks import server as checks
from kit.records import LaunchStatus, RequestRecord, RunFacts
from tests.builders import build_run, build_spec, edit_launches, edit_requests, shared_run

Check = Callable[[Evidence], Iterator[Doubt]]
ADAPTIVE = {"kind": "adaptive", "name": "adaptive", "num_steps": 3}


def found(check: Check, facts: RunFacts) -> list[Doubt]:
    return list(check(evidence_of(facts, analyse(facts))))


def reporting(facts: RunFacts, *, arm: str | None = None, **flags: Any) -> RunFacts:
    return edit_launches(facts, lambda one: replace(one, server_info={**(one.server_info or {}), **flags}), arm=arm)


def adaptive_run() -> RunFacts:
    return build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, ADAPTIVE]))


@pytest.mark.parametrize(
    "check",
    [checks.launch_failed, checks.wrong_server, checks.unfair_flags, checks.adaptive_in_force],
    ids=lambda check: check.__name__,
)
def test_a_sound_run_raises_no_doubt(check: Check) -> None:
    assert found(check, shared_run()) == []
    assert found(check, adaptive_run()) == []


@pytest.mark.parametrize("status", [LaunchStatus.FAILED, LaunchStatus.INTERRUPTED])
def test_a_launch_that_did_not_end_well_is_named_with_its_reason(status: LaunchStatus) -> None:
    facts = edit_launches(
        shared_run(), lambda one: replace(one, status=status, failure="out of memory"), arm="baseline"
    )
    doubts = found(checks.launch_failed, facts)
    assert {(d.code, d.severity, d.arm) for d in doubts} == {(Code.LAUNCH_FAILED, Severity.DOUBT, "baseline")}
    assert all("out of memory" in d.message for d in doubts)


@pytest.mark.parametrize(
    ("arm", "flags"),
    [
        ("baseline", {"speculative_algorithm": "EAGLE3"}),
        ("eagle3_k1", {"speculative_algorithm": None}),
        ("eagle3_k1", {"model_path": "another-model"}),
        ("eagle3_k3", {"internal_states": [{"speculative_algorithm": "NGRAM"}]}),
    ],
)
def test_another_server_is_recognised_by_what_it_says(arm: str, flags: dict[str, Any]) -> None:
    doubts = found(checks.wrong_server, reporting(shared_run(), arm=arm, **flags))
    assert {(d.code, d.severity, d.arm) for d in doubts} == {(Code.WRONG_SERVER, Severity.INVALID, arm)}


def test_a_server_that_nobody_asked_is_unknown() -> None:
    facts = edit_launches(shared_run(), lambda one: replace(one, server_info=None), arm="eagle3_k1")
    doubts = found(checks.wrong_server, facts)
    assert {(d.code, d.severity) for d in doubts} == {(Code.SERVER_UNSEEN, Severity.UNKNOWN)}


@pytest.mark.parametrize("check", [checks.wrong_server, trace.trace_missing], ids=lambda check: check.__name__)
def test_a_launch_that_was_stopped_before_it_served_raises_no_doubt_of_its_own(check: Check) -> None:
    facts = shared_run()
    begun = replace(
        facts.launches[-1], launch=99, status=LaunchStatus.INTERRUPTED, server_info=None, failure="stopped by the user"
    )
    assert found(check, replace(facts, launches=(*facts.launches, begun))) == []


def test_a_baseline_whose_answers_count_verify_rounds_speculates() -> None:
    def speculate(request: RequestRecord) -> RequestRecord:
        return replace(request, histogram=(3, 1), verify_rounds=4, correct_drafts=1)

    doubts = found(checks.wrong_server, edit_requests(shared_run(), speculate, arm="baseline", first=1))
    assert [(d.code, d.severity, d.arm) for d in doubts] == [(Code.WRONG_SERVER, Severity.INVALID, "baseline")]


def test_an_arm_whose_answers_count_none_does_not_speculate() -> None:
    def plain(request: RequestRecord) -> RequestRecord:
        return replace(request, histogram=None, verify_rounds=None, correct_drafts=None)

    doubts = found(checks.wrong_server, edit_requests(shared_run(), plain, arm="eagle3_k3"))
    assert {(d.code, d.severity, d.arm) for d in doubts} == {(Code.WRONG_SERVER, Severity.INVALID, "eagle3_k3")}


def test_an_unfair_flag_voids_the_arm_that_has_it() -> None:
    doubts = found(checks.unfair_flags, reporting(shared_run(), arm="eagle3_k3", page_size=64))
    assert [(d.code, d.severity, d.arm) for d in doubts] == [(Code.UNFAIR_FLAG, Severity.INVALID, "eagle3_k3")]


@pytest.mark.parametrize(("tokens", "severity"), [(90_000, Severity.DOUBT), (2_000, Severity.INVALID)])
def test_another_pool_size_voids_only_where_requests_may_not_fit(tokens: int, severity: Severity) -> None:
    # four requests of 512 tokens need 2,048
    doubts = found(checks.unfair_flags, reporting(shared_run(), arm="eagle3_k3", max_total_num_tokens=tokens))
    assert [(d.code, d.severity) for d in doubts] == [(Code.UNFAIR_FLAG, severity)]


def test_adaptive_mode_that_the_server_dropped_voids_the_launch() -> None:
    doubts = found(checks.adaptive_in_force, reporting(adaptive_run(), arm="adaptive", speculative_adaptive=False))
    assert {(d.code, d.severity) for d in doubts} == {(Code.ADAPTIVE_NOT_IN_FORCE, Severity.INVALID)}


def test_a_controller_that_never_moved_is_shown() -> None:
    facts = adaptive_run()
    its = facts.trace.iterations
    still = replace(its, draft_tokens=its.draft_tokens.clip(max=2))
    doubts = found(checks.adaptive_in_force, replace(facts, trace=replace(facts.trace, iterations=still)))
    assert {(d.code, d.severity) for d in doubts} == {(Code.ADAPTIVE_NOT_IN_FORCE, Severity.DOUBT)}
    assert "never left K=1" in doubts[0].message
