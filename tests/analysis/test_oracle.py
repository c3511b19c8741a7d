"""An oracle appears only as far as the gates allow, with a reason for everything that is withheld."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import Costs, Oracle, OracleKind, Study, account_costs
from kit.records import RunFacts
from kit.stats import Disclosure, GateReading, GateSentence, GateWord
from tests.builders import build_run, build_spec, eagle3, shared_run

WIDE = {"delta_1": 0.3, "delta_2": 0.2, "functional_limit": 0.5}
BASELINE = {"kind": "baseline", "name": "baseline"}


def study_of(facts: RunFacts) -> tuple[Study, Costs]:
    study = Study.of(facts)
    analysis = study.analysis()
    valid = frozenset(cell.cell for cell in analysis.cells)
    return study, account_costs(study.index.spec, analysis.cells, analysis.acceptance, valid=valid)


def oracles_of(facts: RunFacts) -> tuple[Oracle, Oracle]:
    study, costs = study_of(facts)
    return study.oracles(study.analysis().gates, costs)


@pytest.fixture(scope="module")
def released() -> RunFacts:
    """A run of three depths whose gates pass by wide margins, with enough waves."""
    load = {"concurrency": [1, 4], "waves": 8, "min_requests": 8}
    workload = {"prompts": 96, "min_output_tokens": 24, "max_output_tokens": 40}
    return build_run(build_spec(arms=[BASELINE, eagle3(1), eagle3(3)], load=load, workload=workload, gate=WIDE))


def test_a_first_gate_that_does_not_pass_withholds_the_curve_oracle() -> None:
    curve, replay = oracles_of(shared_run())
    assert (curve.levels, replay.levels) == ((), ())
    assert curve.reason == "the first gate must pass"
    assert replay.reason == "the second gate must pass"


def test_both_oracles_have_gaps_with_intervals_where_both_gates_pass(released: RunFacts) -> None:
    study, costs = study_of(released)
    gates = study.analysis().gates
    assert (gates.v1.word, gates.v2.word) == (GateWord.PASS, GateWord.PASS)
    for oracle in study.oracles(gates, costs):
        assert oracle.reason is None and oracle.depths == (1, 3)
        (one, four) = oracle.levels
        assert one.gaps is not None and four.gaps is not None
        assert four.gaps.batches == 24
        assert four.gaps.curve_over_scalar.interval is not None


def test_a_failed_second_gate_vetoes_what_the_first_released(released: RunFacts) -> None:
    study, costs = study_of(released)
    vetoed = GateReading(Disclosure.VETOED, Disclosure.WITHHELD, GateSentence.MASKED)
    gates = replace(study.analysis().gates, reading=vetoed)
    assert {oracle.levels for oracle in study.oracles(gates, costs)} == {()}


def test_a_functional_error_withholds_the_curve_oracle_with_its_own_reason(released: RunFacts) -> None:
    study, costs = study_of(released)
    gates = study.analysis().gates
    blocked = replace(gates.reading, curve_oracle=Disclosure.WITHHELD, functional_blocks=True)
    curve, replay = study.oracles(replace(gates, reading=blocked), costs)
    assert "too far off" in (curve.reason or "")
    assert replay.kind is OracleKind.REPLAY and replay.levels


def test_few_waves_are_a_reason(released: RunFacts) -> None:
    spec = build_spec(gate=WIDE)
    (one, four) = oracles_of(build_run(spec))[0].levels
    assert four.gaps is None and "12 whole waves" in (four.reason or "")
    assert one.gaps is not None or one.reason


def test_one_depth_leaves_nothing_to_choose() -> None:
    curve, _ = oracles_of(build_run(build_spec(arms=[BASELINE, eagle3(3)])))
    assert curve.levels == () and curve.reason
