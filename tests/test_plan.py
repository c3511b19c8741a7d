"""The plan: seeded, balanced, the same for the same spec, and honest about what was left out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import SpecError
from kit.plan import PlannedCell, Selection, Timing, estimate_seconds, make_plan, selection_of, timing_of
from kit.records import Role
from tests.specs import make_spec


def orders(**design: Any) -> list[list[str]]:
    plan = make_plan(make_spec(design=design))
    blocks = {launch.block for launch in plan.launches if launch.role is Role.MEASURE}
    return [
        [launch.arm for launch in plan.launches if launch.block == b and launch.role is Role.MEASURE]
        for b in sorted(blocks)
    ]


def test_every_block_holds_every_arm_once() -> None:
    arms = Counter(arm.name for arm in make_spec().arms)
    assert [Counter(order) for order in orders(blocks=5)] == [arms] * 5


def test_every_second_block_mirrors_the_one_before_it() -> None:
    first, second, third, fourth = orders(blocks=4)
    assert second == first[::-1]
    assert fourth == third[::-1]


@given(st.integers(0, 10_000))
def test_the_seed_alone_decides_the_order(seed: int) -> None:
    assert orders(blocks=2, seed=seed) == orders(blocks=2, seed=seed)


def test_seeds_lead_to_different_orders() -> None:
    assert len({tuple(orders(blocks=1, seed=seed)[0]) for seed in range(30)}) > 1


def test_all_arms_of_a_block_visit_the_concurrencies_in_the_same_order() -> None:
    plan = make_plan(make_spec(design={"blocks": 3}))
    for block in range(3):
        assert len({launch.cells for launch in plan.launches if launch.block == block}) == 1


def test_a_cell_sends_its_waves_and_warms_every_slot() -> None:
    spec = make_spec(load={"concurrency": (1, 8), "waves": 4, "min_requests": 6, "warmup_requests": 2})
    cells = {cell for launch in make_plan(spec).launches for cell in launch.cells}
    assert cells == {PlannedCell(1, 6, 2), PlannedCell(8, 32, 8)}


def test_controls_are_launches_of_the_baseline_with_a_role_of_their_own() -> None:
    plan = make_plan(make_spec(design={"blocks": 2, "aa_speed": True, "closing_baseline": True}))
    roles = Counter((launch.arm, launch.role) for launch in plan.launches if launch.role is not Role.MEASURE)
    assert roles == {("baseline", Role.AA_SPEED): 2, ("baseline", Role.CLOSING): 1}
    assert plan.launches[-1].role is Role.CLOSING


def test_a_selection_is_declared_partial() -> None:
    selection = Selection(arms=("baseline", "k3"), levels=(1,), blocks=1)
    plan = make_plan(make_spec(), selection)
    assert {launch.arm for launch in plan.launches} == {"baseline", "k3"}
    assert {cell.concurrency for launch in plan.launches for cell in launch.cells} == {1}
    assert len(plan.declarations) == 3
    assert all(text.startswith("PARTIAL: ") for text in plan.declarations)


def test_the_whole_spec_declares_nothing() -> None:
    assert make_plan(make_spec()).declarations == ()


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(arms=("baseline", "k9")), "--arms k9"),
        (Selection(arms=("k3",)), "leaves out `baseline`"),
        (Selection(levels=(5,)), "--levels 5"),
        (Selection(blocks=99), "--blocks 99"),
    ],
)
def test_a_selection_outside_the_spec_is_refused(selection: Selection, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_plan(make_spec(), selection)


def test_the_estimate_adds_starts_and_waves() -> None:
    spec = make_spec(
        design={"blocks": 1}, load={"concurrency": (8,), "waves": 4, "min_requests": 1, "warmup_requests": 8}
    )
    plan = make_plan(spec, Selection(arms=("baseline",)))
    seconds = estimate_seconds(plan, timing=Timing(startup_s=10, iteration_s=0.01), output_tokens=100)
    assert seconds == pytest.approx(10 + 5 * 100 * 0.01)


@pytest.mark.parametrize(
    ("engine", "startup_s"),
    [
        ({}, 1.5),
        ({"runtime": "local", "world": None}, 120.0),
        ({"runtime": "local", "world": None, "image": "cpu"}, 40.0),
    ],
    ids=["stand-in", "GPU", "CPU"],
)
def test_the_estimate_knows_what_computes(engine: dict[str, Any], startup_s: float) -> None:
    assert timing_of(make_spec(engine=engine)).startup_s == startup_s


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(arms=("baseline", "k3")),
        Selection(levels=(1, 8), blocks=1),
        Selection(arms=("baseline",), levels=(32,), blocks=2),
    ],
)
def test_a_selection_can_be_read_from_what_a_run_declares(selection: Selection) -> None:
    assert selection_of((*make_plan(make_spec(), selection).declarations, "CONTENT: other")) == selection


def test_rates_follow_the_closed_loops_in_ascending_order_and_are_the_same_for_every_arm() -> None:
    spec = make_spec(load={"concurrency": (1, 4), "arrival": {"rates": (8.0, 2.0), "requests": 20}})
    plan = make_plan(spec)
    for launch in plan.launches:
        assert [cell.per_second for cell in launch.cells] == [None, None, 2.0, 8.0]
    assert all(
        cell.per_second is None for launch in make_plan(spec, Selection(levels=(1,))).launches for cell in launch.cells
    )
    without = estimate_seconds(
        make_plan(make_spec(load={"concurrency": (1, 4)})), timing=Timing(1.0, 0.01), output_tokens=10
    )
    offered = len(plan.launches) * (20 / 2.0 + 20 / 8.0 + 2 * 0.1)
    assert estimate_seconds(plan, timing=Timing(1.0, 0.01), output_tokens=10) == pytest.approx(without + offered)
