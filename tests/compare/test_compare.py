"""Ratios between two runs whose true difference is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from kit.compare import Factor, RunComparison, compare
from kit.records import GpuSample, Launch, LaunchStatus, Outcome, RunFacts
from kit.stats import Estimate, SpeedWord
from tests.builders import edit_launches, edit_requests
from tests.compare.runs import CHEAPER, pair


@cache
def compared() -> RunComparison:
    return compare(*pair(), factor=Factor.BACKEND)


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.interval is not None and estimate.interval.contains(truth)


def test_sides_are_called_by_their_value_of_the_factor() -> None:
    assert (compared().first.label, compared().second.label) == ("triton", "flashinfer")
    assert (compared().first.valid, compared().first.cells) == (30, 30)


def test_the_ratio_of_every_arm_holds_the_truth_and_launches_are_its_unit() -> None:
    for one in compared().arms:
        assert one.ratio.n == 3
        truth = 1.0 if one.arm == "baseline" else 1 / CHEAPER
        assert holds(one.ratio, truth), one.arm
        assert one.word is (SpeedWord.INCONCLUSIVE if one.arm == "baseline" else SpeedWord.FASTER)


def test_a_gain_is_that_of_an_arm_over_its_own_baseline() -> None:
    assert {one.arm for one in compared().arms if one.gain is None} == {"baseline"}
    assert all(holds(one.gain, 1 / CHEAPER) for one in compared().arms if one.gain is not None)


def test_iteration_times_are_compared_at_every_depth_and_batch() -> None:
    rows = {(one.arm, one.depth, one.batch_size): one for one in compared().depth_times}
    assert {batch for _, _, batch in rows} == {1, 4}
    assert {depth for arm, depth, _ in rows if arm == "adaptive"} == {1, 3}
    assert holds(rows["eagle3_k3", 3, 4].ratio, CHEAPER)
    assert holds(rows["baseline", None, 4].ratio, 1.0)
    stretch = rows["eagle3_k3", 3, 4].first_stretch
    assert stretch is not None
    assert stretch.point == pytest.approx(0.0228 / 0.0108, rel=0.05)


def test_the_tax_of_speculating_has_an_interval_on_either_side() -> None:
    tax = next(one for one in compared().taxes if one.batch_size == 4)
    assert tax.depths == (1, 3, 5)
    assert holds(tax.first_ms, 6.0)
    assert holds(tax.second_ms, CHEAPER * 16.8 - 10.8)
    assert holds(tax.difference_ms, CHEAPER * 16.8 - 10.8 - 6.0)
    assert holds(tax.first_per_draft_ms, 2.0)
    assert holds(tax.per_draft_ratio, CHEAPER)


def test_depths_of_one_block_alone_do_not_cost_the_others_their_interval() -> None:
    """Arms that a spec launches once are missing elsewhere; the tax then rests on those that every block has."""
    first, second = pair()
    shorter = edit_launches(first, lambda one: _failed(one) if one.block else one, arm="eagle3_k5")
    taxes = compare(shorter, second, factor=Factor.BACKEND).taxes
    assert {(one.depths, one.first_ms.n) for one in taxes} == {((1, 3), 3)}


def _failed(launch: Launch) -> Launch:
    return replace(launch, status=LaunchStatus.VOID, failure="void")


def test_a_cell_that_is_not_valid_enters_nothing() -> None:
    first, second = pair()
    broken = edit_requests(second, lambda one: replace(one, outcome=Outcome.TIMEOUT), arm="eagle3_k1")
    rows = compare(first, broken, factor=Factor.BACKEND)
    ratios = [one for one in rows.arms if one.arm == "eagle3_k1"]
    assert {one.word for one in ratios} == {SpeedWord.INCONCLUSIVE}
    assert all(one.ratio.point is None and one.ratio.reason for one in ratios)
    assert all(one.second_ms.point is None for one in rows.depth_times if one.arm == "eagle3_k1")


def test_the_answer_counts_every_word() -> None:
    assert compared().answer == (
        "flashinfer against triton, 10 arms x levels: throughput 8 faster, 2 undecided; "
        "what speculation gains over its baseline 8 larger."
    )


def test_a_reader_is_told_that_the_runs_were_made_one_after_the_other() -> None:
    assert "whatever else changed in between" in compared().limits[0]


@pytest.mark.parametrize(("mhz", "said"), [(1980, False), (1590, True)])
def test_another_clock_of_the_gpus_is_said(mhz: int, said: bool) -> None:
    first, second = (_clocked(facts, at) for facts, at in zip(pair(), (1980, mhz), strict=True))
    found = compare(first, second, factor=Factor.BACKEND)
    assert (found.first.sm_mhz, found.second.sm_mhz) == (1980, mhz)
    assert any("every ratio is partly one of clocks" in limit for limit in found.limits) is said


def _clocked(facts: RunFacts, mhz: int) -> RunFacts:
    samples = [
        GpuSample(one.repetition, 0, at_ns, sm_mhz=mhz, processes=1)
        for one in facts.repetitions
        for at_ns in (one.started_ns, one.ended_ns)
    ]
    return replace(facts, gpu_samples=tuple(samples))
