"""Neither the highest rate of acceptance nor the longest accepted draft names the best arm: throughput does."""

from __future__ import annotations

import pytest

from kit.analysis import load_switches
from kit.report import render
from kit.spec import Spec
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3
from tests.field.inputs import Pass, judged_speed, rows

ROWS = {row["arm"]: row for row in rows("F18", "sweep.jsonl")}
DEPTHS = {arm: row["steps"] for arm, row in ROWS.items() if row["steps"]}


def spec() -> Spec:
    arms = [{"kind": "baseline", "name": "none"}, *(eagle3(depth, name=arm) for arm, depth in DEPTHS.items())]
    return build_spec(arms=arms, load={"concurrency": [1]})


def best(throughputs: dict[str, float]) -> tuple[str | None, float | None]:
    passes = [Pass(arm, 1, block, tok_s) for arm, tok_s in throughputs.items() for block in range(3)]
    speed, _ = judged_speed(spec(), passes)
    (switch,) = load_switches(spec(), speed)
    return switch.best, switch.ratio.point


def test_the_best_arm_is_the_one_that_gives_most() -> None:
    arm, ratio = best({arm: row["output_throughput"] for arm, row in ROWS.items()})
    assert arm == "k5"
    assert ratio == pytest.approx(1.80, abs=0.005)


@pytest.mark.parametrize("winner", ["k1", "k3", "k7"])
def test_whichever_arm_gives_most_is_the_best_whatever_its_acceptance(winner: str) -> None:
    given = {arm: row["output_throughput"] for arm, row in ROWS.items()} | {winner: 300.0}
    assert best(given)[0] == winner


def test_rate_is_length_in_other_words() -> None:
    """Accepted drafts a round over K falls with K by arithmetic, and the kit prints no such rate."""
    for arm, depth in DEPTHS.items():
        assert (ROWS[arm]["accept_length"] - 1) / depth == pytest.approx(ROWS[arm]["accept_rate"], abs=0.001)
    assert "acceptance rate" not in render(judge(build_run(spec()))).lower()


def test_two_per_cent_between_two_arms_is_no_ranking() -> None:
    """Arms are compared with the baseline; that one of them is best is a description without a word."""
    document = render(judge(build_run(spec())))
    section = document.partition("## What a load switch could win")[2].partition("\n## ")[0]
    assert "chosen after seeing" in section
    assert "**faster**" not in section
