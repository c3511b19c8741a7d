"""What switching arms with the load could win, in runs whose truth is known."""

from __future__ import annotations

from kit.analysis import LoadSwitch
from kit.verdict import judge
from tests.builders import Cost, build_run, build_spec, eagle3

ARMS = [
    {"kind": "baseline", "name": "baseline"},
    eagle3(1),
    eagle3(3),
    {"kind": "adaptive", "name": "a", "num_steps": 3},
]


def switches(cost: Cost, arms: list[dict[str, object]] = ARMS) -> dict[int, LoadSwitch]:
    verdict = judge(build_run(build_spec(arms=arms), cost=cost))
    return {one.concurrency: one for one in verdict.switches}


def test_the_best_fixed_arm_of_each_level_is_named_with_the_interval_of_its_ratio() -> None:
    found = switches(lambda depth, batch: 0.010 + (0.003 * depth * (batch - 1) if depth else 0.0))
    assert [one.best for one in found.values()] == ["eagle3_k3", None]
    assert found[1].ratio.interval is not None
    assert found[1].ratio.n == 3


def test_an_adaptive_arm_is_held_against_the_best_one_in_the_same_blocks() -> None:
    (share,) = switches(lambda depth, batch: 0.010)[1].adaptive
    assert share.against_best.n == 3
    assert share.realised.point is not None
    assert 0 < share.realised.point < 1
    assert share.realised.reason


def test_where_no_gain_is_shown_nothing_is_realised() -> None:
    (share,) = switches(lambda depth, batch: 0.030 if depth else 0.010)[4].adaptive
    assert (share.realised.point, share.realised.interval) == (None, None)
    assert "nothing to realise" in (share.realised.reason or "")


def test_without_an_adaptive_arm_the_level_still_has_its_best() -> None:
    found = switches(lambda depth, batch: 0.010, ARMS[:2])
    assert [(one.best, one.adaptive) for one in found.values()] == [("eagle3_k1", ())] * 2
