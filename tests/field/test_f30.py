"""A rate above 1 in an adaptive arm divides drafts of two widths by the width of the last; the length is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.analysis import Acceptance, analyse
from kit.checks import CellState, Code, cell_states, check_run
from kit.diagnosis import Cause, diagnose
from kit.records import Launch, Outcome, RunFacts
from kit.report import write_report
from kit.sglang import added_counts, broken_counts, draft_counts
from kit.verdict import judge
from tests.builders import build_run, build_spec, edit_launches
from tests.field.inputs import answered_run, record_of, rows

GAUGES = rows("F30", "gauges.jsonl")
ANSWERS = [row["meta_info"] for row in rows("F30", "responses.jsonl")]
BASELINE = {"kind": "baseline", "name": "baseline"}
ADAPTIVE = {"kind": "adaptive", "name": "adaptive", "num_steps": 5, "candidates": {"1": [3, 5]}}

# Launched at K = 3 and at K = 7: wider and narrower than what ran; with the histogram of K 3 and 5 in turns.
HISTOGRAM = [40, 30, 30, 60, 20, 20]
ROUNDS, ACCEPTED = sum(HISTOGRAM), sum(j * n for j, n in enumerate(HISTOGRAM))
VARIANTS = {launched: launched * ROUNDS for launched in (3, 7)}


def variant(proposed: int) -> dict[str, Any]:
    return {
        "completion_tokens": 1 + ROUNDS + ACCEPTED,
        "spec_verify_ct": ROUNDS,
        "spec_num_correct_drafts": ACCEPTED,
        "spec_num_proposed_drafts": proposed,
        "spec_correct_drafts_histogram": HISTOGRAM,
    }


def adaptive_arm(facts: RunFacts) -> Acceptance:
    (found,) = (row for row in analyse(facts).acceptance if row.arm == "adaptive")
    return found


def test_the_length_is_that_of_the_responses_and_of_the_gauges() -> None:
    total = added_counts(map(draft_counts, ANSWERS))
    assert total is not None
    assert total.tokens_a_round == pytest.approx(3.76)
    assert sum(row["spec_accept_length"] for row in GAUGES) / len(GAUGES) == pytest.approx(3.76)


def test_more_drafts_than_the_launch_width_allows_break_no_identity_of_an_adaptive_arm() -> None:
    variants = [variant(proposed) for proposed in VARIANTS.values()]
    for meta in (*ANSWERS, *variants):
        assert list(broken_counts(meta, drafts_a_round=None)) == []
    assert {record_of(meta).outcome for meta in variants} == {Outcome.OK}


@pytest.mark.parametrize("launched", VARIANTS)
def test_an_adaptive_arm_has_a_length_and_no_rate(launched: int) -> None:
    facts = answered_run({"adaptive": [variant(VARIANTS[launched])]}, [BASELINE, ADAPTIVE])
    found = adaptive_arm(facts)
    assert found.acceptance_length.point == pytest.approx(1 + ACCEPTED / ROUNDS)
    assert (found.requests, found.dropped) == (1, 0)
    assert found.tokens_per_position.point is None
    assert "several K" in (found.tokens_per_position.reason or "")


@pytest.mark.parametrize("launched", VARIANTS)
def test_a_histogram_without_a_trace_gives_bounds_and_the_report_says_so(launched: int, tmp_path: Path) -> None:
    facts = answered_run({"adaptive": [variant(VARIANTS[launched])]}, [BASELINE, ADAPTIVE])
    found = adaptive_arm(facts)
    # Every candidate drafts at least three positions; at the fourth the 60 rounds that kept three may have had no more.
    assert [bound.lower.point for bound in found.bounds] == [0.8, 0.65, 0.5, 0.2, 0.1]
    assert [bound.upper.point for bound in found.bounds] == [0.8, 0.65, 0.5, 0.5, 0.4]
    assert [estimate.point for estimate in found.survival] == [0.8]
    page = write_report(judge(facts), out=tmp_path, notes=None).page.read_text(encoding="utf-8")
    assert "No trace tells which K the rounds of `adaptive` ran at" in page
    assert "0.200 to 0.500" in page


def test_averages_of_a_server_change_nothing_and_are_no_reason_to_refuse() -> None:
    sound = build_run(build_spec(arms=[BASELINE, ADAPTIVE]))

    def gauging(launch: Launch) -> Launch:
        state = {"avg_spec_accept_length": GAUGES[2]["spec_accept_length"]}
        info = {**(launch.server_info or {}), "internal_states": [state]}
        return replace(launch, server_info=info, log="\n".join(map(_decode_line, GAUGES)))

    facts = edit_launches(sound, gauging, arm="adaptive")
    analysis = analyse(facts)
    assert analysis.acceptance == analyse(sound).acceptance
    doubts = check_run(facts, analysis)
    assert {state.state for state in cell_states(analysis.cells, doubts)} == {CellState.VALID}
    assert Code.CHECK_CRASHED not in {doubt.code for doubt in doubts}


def test_a_log_with_such_a_rate_is_the_log_of_a_sound_server() -> None:
    assert diagnose("\n".join(map(_decode_line, GAUGES))).cause is Cause.NONE


def _decode_line(gauge: dict[str, Any]) -> str:
    return (
        f"[2026-01-05 10:00:0{gauge['t_s']}] Decode batch, #running-req: 1, #token: 900, token usage: 0.00, "
        f"accept len: {gauge['spec_accept_length']:.2f}, accept rate: {gauge['spec_accept_rate']:.2f}, "
        "cuda graph: True, gen throughput (token/s): 175.00, #queue-req: 0"
    )
