from __future__ import annotations

import json
import lzma

import pytest

from kit.standin.adaptive import AdaptiveController, Rung, candidates, parse_ladder
from tests.captures import CAPTURES, H200
from tests.standin.worlds import LADDER


def test_the_built_in_ladder_is_that_of_0_5_15() -> None:
    assert {size: rung.candidate_steps for size, rung in LADDER.items()} == {
        1: (1, 3, 7),
        8: (0, 1, 3),
        32: (0, 1),
        64: (0,),
    }
    assert candidates(LADDER) == (0, 1, 3, 7)


@pytest.mark.parametrize(
    "launch_steps, depths", [(7, {1: 7, 8: 1, 32: 1, 64: 0}), (3, {1: 3, 7: 3, 8: 3, 31: 3, 32: 1, 48: 1, 64: 0})]
)
def test_slots_start_at_the_launch_depth_or_in_their_middle(launch_steps: int, depths: dict[int, int]) -> None:
    controller = AdaptiveController(LADDER, launch_steps=launch_steps)
    assert {rows: controller.depth(rows) for rows in depths} == depths


def test_nothing_is_decided_during_warm_up() -> None:
    controller = AdaptiveController(LADDER, launch_steps=7)
    assert all(controller.observe([0]) is None for _ in range(14))
    switch = controller.observe([0])
    assert switch is not None and (switch.before, switch.after) == (7, 1)


def test_without_acceptance_a_large_batch_alternates_between_0_and_1() -> None:
    controller = AdaptiveController(LADDER, launch_steps=7)
    depths = []
    for _ in range(40):
        controller.observe([0] * 32)
        depths.append(controller.depth(32))
    assert depths == [1] * 14 + [0] * 5 + [1] * 5 + [0] * 5 + [1] * 5 + [0] * 5 + [1]


@pytest.mark.parametrize(
    "current, average, after", [(3, 0.25, 1), (3, 0.26, 3), (7, 2.25, 3), (7, 2.26, 7), (1, 0.51, 3), (3, 2.51, 7)]
)
def test_the_small_batch_slot_moves_at_the_documented_averages(current: int, average: float, after: int) -> None:
    eager = {1: Rung((1, 3, 7), ema_alpha=1.0, update_interval=1, warmup_batches=0)}
    controller = AdaptiveController(eager, launch_steps=current)
    controller.observe([average])  # type: ignore[list-item]
    assert controller.depth(1) == after


def test_one_update_may_climb_or_fall_several_candidates() -> None:
    eager = {1: Rung((0, 1, 3, 7), ema_alpha=1.0, update_interval=1, warmup_batches=0)}
    controller = AdaptiveController(eager, launch_steps=1)
    controller.observe([6])
    assert controller.depth(1) == 7
    controller.observe([0])
    assert controller.depth(1) == 0


def test_the_average_is_over_rows_and_only_of_the_slot_in_use() -> None:
    controller = AdaptiveController(LADDER, launch_steps=7)
    for _ in range(15):
        controller.observe([3, 0, 3, 0, 3, 0, 3, 0])
    assert controller.depth(8) == 3
    assert controller.depth(1) == 7


def test_every_depth_of_a_real_adaptive_run_is_predicted() -> None:
    """One H200 run: the controller, fed one launch late, chose the K of all 3,312 iterations."""
    with lzma.open(CAPTURES / H200 / "trace_adaptive.jsonl.xz", "rt") as lines:
        iterations = [json.loads(line) for line in lines]
    controller = AdaptiveController(LADDER, launch_steps=7)
    late: list[int] | None = None
    for iteration in iterations:
        assert controller.depth(iteration["bs"]) == iteration["nd"] - 1, iteration["i"]
        if late is not None:
            controller.observe(late)
        late = iteration["a"]
        # After a batch of ghosts nothing is launched until the next request, so its result is not late.
        if all(ghost for _, _, ghost in iteration["r"]):
            controller.observe(iteration["a"])
            late = None


def test_keys_outside_the_slots_are_defaults_for_all_of_them() -> None:
    ladder = parse_ladder({"ema_alpha": 0.5, "note": "x", "1": {"candidate_steps": [3, 1], "update_interval": 2}})
    assert ladder == {1: Rung((1, 3), ema_alpha=0.5, update_interval=2)}


def test_a_flat_configuration_is_refused() -> None:
    with pytest.raises(ValueError, match="slot"):
        parse_ladder({"candidate_steps": [1, 3]})
