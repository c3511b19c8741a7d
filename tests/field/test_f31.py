"""K flips between two tiers several times a second: that is counted and said, and no mean K stands for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kit.analysis import DepthPace, DepthSource, analyse
from kit.checks import Code, Doubt, Severity, check_run
from kit.diagnosis import depth_log
from kit.records import Iterations, Outcome, RunFacts, Trace
from kit.report import write_report
from kit.verdict import judge
from tests.builders import build_run, build_spec, edit_launches, edit_requests
from tests.field.inputs import objects, rows, text

LOG, LADDER = text("F31", "server.log"), objects("F31", "adaptive.json")
BASELINE = {"kind": "baseline", "name": "baseline"}
ADAPTIVE = {
    "kind": "adaptive",
    "name": "adaptive",
    "num_steps": 5,
    "candidates": {size: slot["candidate_steps"] for size, slot in LADDER.items()},
}


def logged_run(log: str) -> RunFacts:
    """An untraced run of one block whose adaptive server wrote that log."""
    facts = build_run(build_spec(arms=[BASELINE, ADAPTIVE], design={"blocks": 1}, load={"concurrency": [1]}))
    return edit_launches(replace(facts, trace=Trace.empty()), lambda one: replace(one, log=log), arm="adaptive")


def traced_run(stretch: int) -> RunFacts:
    """The same with a trace in which K changes every so many iterations of some 13 ms, and no log."""
    facts = build_run(build_spec(arms=[BASELINE, ADAPTIVE], design={"blocks": 1}, load={"concurrency": [1]}))
    its: Iterations = facts.trace.iterations
    turns = np.where(np.arange(len(its)) // stretch % 2, 6, 4)
    kept = replace(its, draft_tokens=np.where(its.draft_tokens < 0, -1, turns))
    return replace(facts, trace=replace(facts.trace, iterations=kept))


def pace_of(facts: RunFacts) -> DepthPace:
    (pace,) = analyse(facts).depth_paces
    return pace


def unstable(facts: RunFacts) -> list[Doubt]:
    return [doubt for doubt in check_run(facts, analyse(facts)) if doubt.code is Code.ADAPTIVE_UNSTABLE]


def test_every_change_of_the_log_is_counted_with_its_time() -> None:
    found = depth_log(LOG)
    assert found is not None
    assert found.depths == (3, *(5, 3) * 6)
    pace = pace_of(logged_run(LOG))
    assert (pace.source, pace.changes, pace.undone) == (DepthSource.LOG, 12, 11)
    # Two to three a second: the stamps have no fractions.
    assert pace.dwell_s is not None and 1 / 3 <= pace.dwell_s <= 1 / 2
    assert sum(time.share for time in pace.times) == pytest.approx(1)


def test_the_arm_is_qualified_and_told_what_to_change() -> None:
    (doubt,) = unstable(logged_run(LOG))
    assert doubt.severity is Severity.DOUBT
    assert "11 of 12 changes undid the one before" in doubt.message
    assert all(time in doubt.message for time in ("K=3", "K=5"))
    assert all(remedy in doubt.hint for remedy in ("up_hysteresis", "update_interval", "fix K"))


def test_the_report_shows_changes_and_time_at_each_k_and_no_mean_k(tmp_path: Path) -> None:
    page = write_report(judge(logged_run(LOG)), out=tmp_path, notes=None).page.read_text(encoding="utf-8")
    assert "### How often K changed" in page
    assert "`adaptive_unstable`" in page
    assert "mean K of" not in page.lower() and "K=4" not in page


def test_a_cut_stream_stays_a_failure_and_is_blamed_on_nobody() -> None:
    cut = rows("F31", "requests.jsonl")[0]
    assert cut["client_error"] == "IncompleteRead"
    facts = edit_requests(
        logged_run(LOG),
        lambda one: replace(one, outcome=Outcome.CUT, error=cut["client_error"]),
        arm="adaptive",
        first=1,
    )
    doubts = check_run(facts, analyse(facts))
    (failed,) = (doubt for doubt in doubts if doubt.code is Code.FAILED_REQUESTS)
    assert "1 cut" in failed.message
    assert "K" not in failed.message


@pytest.mark.parametrize(("stretch", "restless"), [(5, True), (200, False)])
def test_the_trace_tells_flapping_from_adapting_to_the_millisecond(stretch: int, restless: bool) -> None:
    facts = traced_run(stretch)
    assert pace_of(facts).source is DepthSource.TRACE
    assert bool(unstable(facts)) is restless


def test_a_controller_that_climbs_once_and_stays_is_no_oscillation() -> None:
    lines = [line for line in LOG.splitlines() if "updated" not in line]
    lines.insert(1, "[2026-01-05 10:00:02] Adaptive spec params updated: steps 3 -> 5 (ema_accept_len=2.61)")
    facts = logged_run("\n".join(lines))
    pace = pace_of(facts)
    assert (pace.changes, pace.undone, pace.dwell_s) == (1, 0, None)
    assert unstable(facts) == []


def test_a_log_without_a_controller_or_without_stamps_tells_nothing() -> None:
    assert depth_log("") is None
    assert depth_log("Adaptive spec params updated: steps 3 -> 5 (ema_accept_len=2.61)") is None
