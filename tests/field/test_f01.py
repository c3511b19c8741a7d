"""Speculation wins at low load and loses at high: words by concurrency, never one average."""

from __future__ import annotations

from functools import cache

import pytest

from kit.analysis import Speed
from kit.spec import Spec
from kit.stats import SpeedWord
from kit.verdict import SpeedSection
from tests.builders import build_spec, eagle3
from tests.field.inputs import Pass, judged_speed, rows

LEVELS = (1, 2, 4, 8, 16, 32, 64)
ARMS = [{"kind": "baseline", "name": "none"}, eagle3(3, name="k3"), {"kind": "adaptive", "name": "adaptive"}]


def spec() -> Spec:
    return build_spec(arms=ARMS, load={"concurrency": list(LEVELS)}, decision={"max_slowdown": 0.02})


@cache
def judged(levels: tuple[int, ...] = LEVELS) -> tuple[Speed, SpeedSection]:
    passes = [
        Pass(row["arm"], row["concurrency"], row["rep"] - 1, row["output_throughput"])
        for row in rows("F01", "results.jsonl")
        if row["concurrency"] in levels
    ]
    return judged_speed(spec(), passes)


def words(arm: str, levels: tuple[int, ...] = LEVELS) -> dict[int, SpeedWord]:
    found = [one for one in judged(levels)[1].comparisons if one.comparison.arm == arm]
    return {one.comparison.concurrency: one.word for one in found}


def test_k3_wins_up_to_16_and_loses_from_32() -> None:
    assert {level for level, word in words("k3").items() if word is SpeedWord.FASTER} == {1, 2, 4, 8, 16}
    assert {level for level, word in words("k3").items() if word is SpeedWord.SLOWER} == {32, 64}


def test_a_difference_inside_the_spread_of_the_repeats_is_neither_a_win_nor_a_loss() -> None:
    assert not {words("adaptive")[32], words("adaptive")[64]} & {SpeedWord.FASTER, SpeedWord.SLOWER}
    assert {words("adaptive")[level] for level in (1, 2, 4, 8, 16)} == {SpeedWord.FASTER}


@pytest.mark.parametrize("levels", [LEVELS, (1, 4, 16, 32)], ids=["all", "a shorter sweep"])
def test_the_crossover_lies_between_the_levels_at_which_the_sign_changes(levels: tuple[int, ...]) -> None:
    crossing = next(one.result for one in judged(levels)[1].crossovers if one.result.arm == "k3")
    assert crossing.concurrency.point is not None
    assert 16 < crossing.concurrency.point < 32
    assert crossing.concurrency.point == pytest.approx(25, abs=3)
    assert crossing.range_high == max(levels)  # nothing is said beyond what was swept


def test_a_gate_on_the_largest_loss_names_the_levels_at_which_k3_fails() -> None:
    found = [one for one in judged()[1].comparisons if one.comparison.arm == "k3"]
    assert {one.comparison.concurrency for one in found if not one.tolerable} == {32, 64}


def test_every_ratio_stands_by_itself_with_its_interval() -> None:
    ratios = {
        one.comparison.concurrency: one.comparison.ratio
        for one in judged()[1].comparisons
        if one.comparison.arm == "k3"
    }
    expected = (1.724, 1.631, 1.527, 1.349, 1.112, 0.938, 0.801)
    assert [ratios[level].point for level in LEVELS] == pytest.approx(expected, abs=0.012)
    assert all(ratio.interval is not None for ratio in ratios.values())
