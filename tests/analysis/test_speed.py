"""Ratios are paired in blocks and use valid cells only; less than three blocks carry no interval."""

from __future__ import annotations

from functools import cache

import pytest

from kit.analysis import CellResult, Speed, analyse, compare_speed, spec_of
from kit.records import Role
from kit.spec import Spec
from kit.stats import CrossoverKind, SweepWord
from tests.builders import build_run, build_spec, eagle3, shared_run


@cache
def cells() -> tuple[CellResult, ...]:
    return analyse(shared_run()).cells


def speed(*, without: frozenset[int] = frozenset()) -> Speed:
    valid = frozenset(c.cell for c in cells()) - without
    return compare_speed(spec_of(shared_run()), cells(), valid=valid)


def measured(spec: Spec) -> Speed:
    facts = build_run(spec)
    found = analyse(facts).cells
    return compare_speed(spec, found, valid=frozenset(c.cell for c in found))


def test_the_ratio_is_arm_over_baseline_and_paired_by_block() -> None:
    (one,) = (c for c in speed().comparisons if (c.arm, c.concurrency) == ("eagle3_k3", 1))
    assert [block.block for block in one.blocks] == [0, 1, 2]
    product = 1.0
    for block in one.blocks:
        product *= block.arm_tok_s / block.baseline_tok_s
    assert one.ratio.point == pytest.approx(product ** (1 / 3))
    assert one.ratio.interval is not None
    assert one.ratio.n == 3


def test_a_crossing_is_found_between_the_levels() -> None:
    for crossing in speed().crossovers:
        assert crossing.crossing is CrossoverKind.FOUND
        assert crossing.range_low < (crossing.concurrency.point or 0) < crossing.range_high
        assert crossing.confidence_set[0].contains(crossing.concurrency.point or 0)
    assert {sweep.word for sweep in speed().sweeps} == {SweepWord.EAGLE3_WINS_UP_TO}


def test_an_invalid_cell_takes_its_block_out_of_the_ratio_that_decides() -> None:
    out = next(c.cell for c in cells() if (c.arm, c.concurrency, c.block) == ("eagle3_k3", 1, 1))
    found = speed(without=frozenset({out}))
    (one,) = (c for c in found.comparisons if (c.arm, c.concurrency) == ("eagle3_k3", 1))
    assert [block.block for block in one.blocks] == [0, 2]
    assert one.ratio.point is not None
    assert one.ratio.interval is None
    assert one.ratio.reason == "2 of the 3 blocks that an interval needs"
    assert (one.p_faster, one.p_slower, one.p_equivalent) == (1, 1, 1)
    assert one.ratio_full_run.n == 3  # decides nothing, so it keeps every cell


def test_an_invalid_baseline_takes_its_block_out_of_every_comparison() -> None:
    out = next(c.cell for c in cells() if (c.arm, c.concurrency, c.block) == ("baseline", 4, 0))
    found = speed(without=frozenset({out}))
    for one in found.comparisons:
        assert len(one.blocks) == (2 if one.concurrency == 4 else 3)


def test_without_a_valid_cell_there_is_a_reason_instead_of_a_number() -> None:
    found = compare_speed(spec_of(shared_run()), cells(), valid=frozenset())
    assert all(c.ratio.point is None and c.ratio.reason for c in found.comparisons)
    assert {c.crossing for c in found.crossovers} == {CrossoverKind.INCONCLUSIVE}
    assert all(level.throughput_window.point is None for level in found.levels)
    assert all(level.throughput_full_run.interval is not None for level in found.levels)
    assert all(one.saturation.x_max.point is None for one in found.saturation)


def test_levels_carry_an_interval_over_launches() -> None:
    for level in speed().levels:
        assert level.launches == level.throughput_window.n == 3
        assert level.throughput_window.interval is not None


def test_two_blocks_give_a_point_and_no_interval() -> None:
    found = measured(build_spec(design={"blocks": 2}))
    assert all(c.ratio.interval is None and c.ratio.point is not None for c in found.comparisons)
    assert {sweep.word for sweep in found.sweeps} == {SweepWord.INCONCLUSIVE}


def test_the_baseline_twice_in_a_block_shows_the_noise_floor() -> None:
    found = measured(build_spec(design={"aa_speed": True, "closing_baseline": True}))
    assert {(c.arm, c.baseline) for c in found.aa_speed} == {("baseline", "baseline")}
    assert all(c.ratio.interval is not None and c.ratio.interval.contains(1) for c in found.aa_speed)
    assert all(c.ratio.n == 1 for c in found.closing)
    assert {c.arm for c in found.comparisons} == {"eagle3_k1", "eagle3_k3"}


def test_a_run_without_controls_has_none() -> None:
    assert speed().aa_speed == speed().closing == ()


def test_each_arm_is_compared_with_the_baseline_that_it_names() -> None:
    arms = [
        {"kind": "baseline", "name": "baseline"},
        {"kind": "baseline", "name": "other"},
        eagle3(1),
        eagle3(3, baseline="other"),
    ]
    found = measured(build_spec(arms=arms))
    assert {(c.arm, c.baseline) for c in found.comparisons} == {("eagle3_k1", "baseline"), ("eagle3_k3", "other")}


def test_control_launches_do_not_enter_an_arms_own_estimate() -> None:
    facts = build_run(build_spec(design={"aa_speed": True}))
    found = analyse(facts).cells
    assert {c.role for c in found} == {Role.MEASURE, Role.AA_SPEED}
    levels = compare_speed(spec_of(facts), found, valid=frozenset(c.cell for c in found)).levels
    assert {level.launches for level in levels} == {3}


def test_six_levels_are_fitted_for_saturation() -> None:
    spec = build_spec(
        load={"concurrency": [1, 2, 3, 4, 6, 8], "min_requests": 1},
        workload={"prompts": 96},
        arms=[{"kind": "baseline", "name": "baseline"}],
    )
    (one,) = measured(spec).saturation
    assert one.saturation.fit is not None
    assert one.saturation.saturated is False  # 8 / 0.0116 s is far from 1 / 0.0002 s
