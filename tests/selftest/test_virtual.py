"""A run in virtual time is a run like any other: the same records, through the same file, with valid cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kit.checks import CellState
from kit.records import RunFacts
from kit.selftest.cases import CASES
from kit.selftest.ties import with_ties
from kit.selftest.virtual import virtual_run
from kit.store import read_run, write_facts
from kit.verdict import judge

SPEED = CASES[0]


@pytest.fixture(scope="module")
def facts() -> RunFacts:
    return virtual_run(SPEED.spec, SPEED.world, seed=3)


def test_every_cell_of_a_virtual_run_is_valid_after_a_trip_through_a_file(facts: RunFacts, tmp_path: Path) -> None:
    write_facts(tmp_path / "run.duckdb", facts)
    verdict = judge(read_run(tmp_path / "run.duckdb"))
    assert {state.state for state in verdict.doubts.cells} == {CellState.VALID}
    assert verdict.doubts.identities == ()
    assert all(one.exact == one.requests for one in verdict.doubts.reconciliation)


def test_the_same_seed_gives_the_same_facts_and_another_seed_other_prompts(facts: RunFacts) -> None:
    again = virtual_run(SPEED.spec, SPEED.world, seed=3)
    assert again.trace.iterations.ready_ns.tolist() == facts.trace.iterations.ready_ns.tolist()
    assert all(np.array_equal(a.output_ids, b.output_ids) for a, b in zip(again.requests, facts.requests, strict=True))
    other = virtual_run(SPEED.spec, SPEED.world, seed=4)
    assert not np.array_equal(other.requests[0].output_ids, facts.requests[0].output_ids)


def test_without_violations_no_divergence_is_hard_and_with_one_a_cell_has_one(facts: RunFacts) -> None:
    benign = judge(with_ties(facts, baseline="baseline", violations=0, seed=3)).losslessness.rows
    assert {row.hard for row in benign} == {0}
    assert sum(len(row.outputs.divergences) for row in benign) > 0
    violated = judge(with_ties(facts, baseline="baseline", violations=1, seed=3)).losslessness.rows
    assert {row.hard for row in violated} == {3}
    assert all("asked again" in row.reason for row in violated)
