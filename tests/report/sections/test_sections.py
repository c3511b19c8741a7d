"""What each section says in the cases that the sample verdict does not hold."""

from __future__ import annotations

from dataclasses import replace

from kit.checks import CellJudgement, CellState, Code, Doubt, Scope, Severity
from kit.records import Origin
from kit.report import render
from kit.report.sections.acceptance import acceptance_view
from kit.report.sections.answer import answer_view
from kit.report.sections.doubts import doubts_view
from kit.report.sections.gate import gate_view
from kit.report.sections.lossless import lossless_view
from kit.report.sections.ran import ran_view
from kit.report.sections.saturation import saturation_view
from kit.stats import Estimate, Interval
from kit.verdict import Content, CrossoverVerdict, SpeedSection, Verdict
from tests.report.samples import (
    ACCEPTANCE,
    DOUBTS,
    GATE,
    LOSSLESSNESS,
    SPEED,
    VERDICT,
    WHAT_RAN,
)

NO_WINDOW = Estimate.missing("the client kept no chunk times")


def with_speed(speed: SpeedSection) -> Verdict:
    return replace(VERDICT, speed=speed)


def crossover_row(**changes: object) -> str:
    """The row of one crossover in the table."""
    first = SPEED.crossovers[0]
    result = replace(first.result, **{k: v for k, v in changes.items() if hasattr(first.result, k)})  # type: ignore[arg-type]
    known = {k: v for k, v in changes.items() if not hasattr(first.result, k)}
    changed: CrossoverVerdict = replace(first, result=result, **known)  # type: ignore[arg-type]
    return saturation_view(with_speed(replace(SPEED, crossovers=(changed,)))).crossover_table.splitlines()[2]


def test_a_world_without_a_crossover_is_told_from_one_that_nobody_knows() -> None:
    assert "none in range | yes" in crossover_row(truth=None, covered=True)
    assert "True crossover" not in crossover_row(truth_known=False)


def test_a_truth_outside_the_interval_stands_out() -> None:
    assert "| **no**" in crossover_row(covered=False)


def test_a_confidence_set_that_reaches_both_ends_excludes_nothing() -> None:
    pieces = (Interval(1.0, 32.0, 0.95),)
    assert "all that were measured" in crossover_row(confidence_set=pieces, open_low=True, open_high=True)


def test_an_empty_confidence_set_is_none() -> None:
    assert "| none " in crossover_row(confidence_set=())


def test_without_a_window_the_whole_run_is_shown_with_a_warning_and_without_the_truth() -> None:
    levels = tuple(replace(level, throughput_window=NO_WINDOW) for level in SPEED.levels)
    view = saturation_view(with_speed(replace(SPEED, levels=levels)))
    assert "decides nothing" in view.warning
    assert "Baseline, tok/s (whole run)" in view.arms[0].table
    assert "True" not in view.arms[0].table
    assert view.truth == ""


def test_an_arm_missing_at_a_level_has_a_dash_with_a_reason() -> None:
    levels = tuple(level for level in SPEED.levels if (level.arm, level.concurrency) != ("adaptive", 32))
    words = tuple(w for w in SPEED.comparisons if (w.comparison.arm, w.comparison.concurrency) != ("adaptive", 32))
    view = answer_view(with_speed(replace(SPEED, levels=levels, comparisons=words)))
    (row,) = [line for line in view.tables[-1].table.splitlines() if line.startswith("| `adaptive`")]
    assert row.count("– (b)") == 4
    assert "- (b) no valid cell at this concurrency" in view.tables[-1].table


def test_a_candidate_named_before_the_run_is_told_from_a_family_of_comparisons() -> None:
    assert "Holm" in answer_view(VERDICT).multiplicity
    named = answer_view(with_speed(replace(SPEED, candidate="adaptive", holm=False)))
    assert "names `adaptive` as the candidate" in named.multiplicity


def test_the_gate_shows_the_worst_position_of_each_pair_and_counts_the_rest() -> None:
    cells = GATE.gates.v1.cells
    quiet = replace(cells[0], k=2, difference=replace(cells[0].difference, point=0.001, interval=None, reason="x"))
    gates = replace(GATE.gates, v1=replace(GATE.gates.v1, cells=(quiet, *cells)))
    view = gate_view(replace(GATE, gates=gates))
    assert view.first_shown == "2 rows of 3 tested differences"
    assert "0.078" in view.first_table
    assert "0.001 [" not in view.first_table


def test_a_sampled_run_is_told_why_its_outputs_cannot_be_compared() -> None:
    assert "temperature above 0" in lossless_view(replace(LOSSLESSNESS, greedy=False)).sampling
    assert lossless_view(LOSSLESSNESS).sampling == ""


def test_more_arms_than_fit_side_by_side_go_into_another_table() -> None:
    many = tuple(replace(ACCEPTANCE[0], arm=f"k{i}") for i in range(8))
    tables = acceptance_view(many, Content()).tables
    assert ["`k5`" in tables[0].table, "`k6`" in tables[1].table, len(tables)] == [True, True, 2]


def test_a_doubt_in_every_cell_is_said_once() -> None:
    cells = tuple(CellJudgement(i, 0, "baseline", i + 1, CellState.INVALID, (Code.NAN,)) for i in range(9))
    doubts = tuple(Doubt(Code.NAN, Severity.INVALID, Scope.CELL, "NaN", "look", cell=i) for i in range(9))
    (group,) = doubts_view(replace(DOUBTS, cells=cells, doubts=doubts)).groups
    assert group.where == "all 9 cells"
    (most,) = doubts_view(replace(DOUBTS, cells=cells, doubts=doubts[:8])).groups
    assert most.where.endswith("(`baseline`, 6 at once, launch 0) and 2 more")


def test_a_doubt_about_a_cell_that_is_not_listed_still_names_it() -> None:
    doubt = Doubt(Code.NAN, Severity.INVALID, Scope.CELL, "NaN", "look", cell=77)
    assert doubts_view(replace(DOUBTS, cells=(), doubts=(doubt,))).groups[0].where == "cell 77"


def test_a_trace_with_holes_is_not_called_whole() -> None:
    (trace,) = DOUBTS.traces
    view = doubts_view(replace(DOUBTS, traces=(replace(trace, gaps=3, reversals=1),)))
    assert "3 missing ids, 1 clock reversal" in view.trace_table


def test_iteration_times_are_shown_for_the_measured_levels_only() -> None:
    assert "19.9" not in ran_view(WHAT_RAN, levels={8}).iteration_table
    assert "19.9" in ran_view(WHAT_RAN, levels={5}).iteration_table


def test_a_captured_run_is_judged_again_and_a_measured_one_is_measured_again() -> None:
    assert "speckit run specs/quickstart.yaml" in render(VERDICT)
    imported = replace(VERDICT, what_ran=replace(WHAT_RAN, origin=Origin.IMPORTED))
    assert "speckit report results/20261129-120000-0a1b2c.duckdb" in render(imported)
