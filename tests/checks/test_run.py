"""How much was repeated, and was it fixed before the first number?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Evidence, Severity, evidence_of, registered_in_time
from kit.checks import run as checks
from kit.records import RunFacts
from kit.spec import prereg_hash, registered_part
from tests.builders import build_run, build_spec, shared_run

Check = Callable[[Evidence], Iterator[Doubt]]


def evidence(facts: RunFacts) -> Evidence:
    return evidence_of(facts, analyse(facts))


def found(check: Check, facts: RunFacts) -> list[tuple[Code, Severity]]:
    return [(d.code, d.severity) for d in check(evidence(facts))]


def headed(**changes: object) -> RunFacts:
    facts = shared_run()
    return replace(facts, header=replace(facts.header, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "check",
    [checks.one_launch, checks.few_blocks, checks.declared, checks.not_pre_registered, checks.hash_mismatch],
    ids=lambda check: check.__name__,
)
def test_a_sound_run_raises_no_doubt(check: Check) -> None:
    assert found(check, shared_run()) == []


def test_one_launch_of_an_arm_is_doubted() -> None:
    single = build_run(build_spec(design={"blocks": 1}))
    assert found(checks.one_launch, single) == [(Code.ONE_LAUNCH, Severity.DOUBT)] * 3
    assert found(checks.few_blocks, single) == [(Code.FEW_BLOCKS, Severity.DOUBT)]


def test_an_arm_that_was_never_measured_is_named() -> None:
    facts = shared_run()
    lost = {c.cell for c in facts.cells if facts.launches[c.launch].arm == "eagle3_k3"}
    without = replace(facts, repetitions=tuple(r for r in facts.repetitions if r.cell not in lost))
    assert found(checks.one_launch, without) == [(Code.LAUNCH_FAILED, Severity.DOUBT)]
    assert found(checks.few_blocks, without) == [(Code.FEW_BLOCKS, Severity.DOUBT)]


def test_every_declaration_is_a_doubt() -> None:
    assert found(checks.declared, headed(declarations=("PARTIAL: one", "two"))) == [(Code.DECLARED, Severity.DOUBT)] * 2


@pytest.mark.parametrize(
    ("changes", "in_time"),
    [
        ({}, True),
        ({"spec_commit": None}, False),
        ({"spec_committed_utc": None}, False),
        ({"spec_committed_utc": "2026-11-29T12:00:01+00:00"}, False),
        ({"spec_committed_utc": "2026-11-29T13:59:00+02:00"}, True),
        ({"spec_committed_utc": "2026-11-29T11:59:00"}, True),
    ],
)
def test_a_spec_is_registered_by_a_commit_before_the_run(changes: dict[str, object], in_time: bool) -> None:
    facts = headed(**changes)
    assert registered_in_time(evidence(facts)) is in_time
    assert bool(found(checks.not_pre_registered, facts)) is not in_time


def test_an_edited_spec_voids_the_run() -> None:
    assert found(checks.hash_mismatch, headed(spec_hash="0" * 64)) == [(Code.HASH_MISMATCH, Severity.INVALID)]


def test_other_rules_are_doubted_and_their_hash_is_not_compared() -> None:
    assert found(checks.hash_mismatch, headed(rules_version=0, spec_hash="0" * 64)) == [
        (Code.HASH_MISMATCH, Severity.DOUBT)
    ]


def test_a_field_that_specs_got_later_changes_no_stored_hash() -> None:
    header = shared_run().header
    older = json.loads(header.spec_json)
    del older["design"]["once"]
    before = prereg_hash(registered_part(older, workload_hash=header.workload_hash))
    assert before != header.spec_hash
    assert found(checks.hash_mismatch, headed(spec_json=json.dumps(older), spec_hash=before)) == []
