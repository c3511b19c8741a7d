from __future__ import annotations

import pytest

from kit.standin.engine import Speculation
from kit.standin.truth import jobs, simulate, truth
from kit.standin.world import load_world
from tests.standin.worlds import LADDER

K3 = Speculation.chain(3)


def ratio(world: str, speculation: Speculation, *, concurrency: int) -> float:
    chosen, work = load_world(world), jobs(200)
    arm = simulate(chosen, speculation=speculation, concurrency=concurrency, work=work)
    return arm / simulate(chosen, speculation=None, concurrency=concurrency, work=work)


def test_speculation_wins_alone_and_loses_in_a_crowd_in_the_crossover_world() -> None:
    assert ratio("crossover", K3, concurrency=1) > 1.25
    assert ratio("crossover", K3, concurrency=32) < 0.88


@pytest.mark.parametrize("shortest, longest", [(12, 24), (24, 48)])
def test_the_crossover_of_k_3_lies_where_a_sweep_over_1_8_32_can_find_it(shortest: int, longest: int) -> None:
    work, arms = jobs(400, shortest=shortest, longest=longest), {"baseline": None, "k3": K3}
    fine = truth(load_world("crossover"), arms=arms, work=work, grid=(1, 6, 7, 8, 9, 10, 12)).crossover["k3"]
    coarse = truth(load_world("crossover"), arms=arms, work=work, grid=(1, 8, 32)).crossover["k3"]
    assert fine is not None and 7 < fine < 10
    assert coarse == pytest.approx(fine, rel=0.1)


@pytest.mark.parametrize("concurrency, lower, upper", [(1, 0.80, 0.90), (8, 0.58, 0.68), (32, 0.48, 0.58)])
def test_the_baseline_dominates_by_what_an_earlier_study_saw(concurrency: int, lower: float, upper: float) -> None:
    assert lower < ratio("baseline-dominates", Speculation.chain(2), concurrency=concurrency) < upper


def test_an_adaptive_draft_length_beats_every_fixed_one_in_its_world() -> None:
    adaptive = ratio("adaptive", Speculation.chain(7, ladder=LADDER), concurrency=1)
    assert adaptive > max(ratio("adaptive", Speculation.chain(k), concurrency=1) for k in (1, 3, 7))


def test_a_ratio_that_crosses_nowhere_has_no_crossover() -> None:
    arms = {"baseline": None, "k7": Speculation.chain(7)}
    found = truth(load_world("baseline-dominates"), arms=arms, work=jobs(40), grid=(1, 4))
    assert found.crossover == {"k7": None}


def test_a_loop_that_cannot_be_filled_is_refused() -> None:
    with pytest.raises(ValueError, match="simulate more"):
        simulate(load_world("crossover"), speculation=None, concurrency=8, work=jobs(4))
