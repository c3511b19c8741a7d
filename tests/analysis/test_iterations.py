"""Iteration times are medians over consecutive results at one depth and batch size."""

from __future__ import annotations

import pytest

from kit.analysis import analyse
from tests.builders import build_run, build_spec


def test_the_median_is_the_cost_of_the_world() -> None:
    times = {(t.arm, t.depth, t.batch_size): t for t in analyse(build_run(noise=0.0)).iteration_times}
    assert times["baseline", None, 4].median_s == pytest.approx(0.0108)
    assert times["eagle3_k3", 3, 1].median_s == pytest.approx(0.0107)
    assert times["eagle3_k3", 3, 4].median_s == pytest.approx(0.0113 + 0.024)


def test_an_adaptive_arm_has_one_median_for_each_depth() -> None:
    adaptive = {"kind": "adaptive", "name": "adaptive", "num_steps": 3}
    found = analyse(build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, adaptive])))
    assert {t.depth for t in found.iteration_times if t.arm == "adaptive"} == {1, 3}


def test_a_pause_between_launches_is_no_iteration() -> None:
    facts = build_run(noise=0.0)
    found = sum(t.n for t in analyse(facts).iteration_times)
    assert found == len(facts.trace.iterations) - len(facts.launches)
