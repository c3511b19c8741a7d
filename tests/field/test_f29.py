"""The host drifts by more than the effect: no word, and the reason is said."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Severity, evidence_of
from kit.checks.drift import drift
from kit.compare import Factor, compare
from kit.records import Role
from kit.stats import SpeedWord
from tests.builders import build_spec, eagle3, shared_run
from tests.compare.runs import pair
from tests.field.inputs import Pass, cells_of, judged_speed, text

SPEC = build_spec(
    arms=[{"kind": "baseline", "name": "none"}, eagle3(3, name="k3")],
    load={"concurrency": [1]},
    design={"closing_baseline": True},
)


def passes() -> list[Pass]:
    """The table in its order: three of each arm are blocks, the last baseline is the closing one."""
    counted: dict[str, int] = {}
    found = []
    for row in csv.DictReader(text("F29", "runs.csv").splitlines()):
        block = counted.setdefault(row["arm"], 0)
        counted[row["arm"]] += 1
        role = Role.MEASURE if block < 3 else Role.CLOSING
        found.append(Pass(row["arm"], 1, min(block, 2), float(row["output_tok_s"]), role))
    return found


def drifts(given: list[Pass]) -> list[Doubt]:
    facts = shared_run()
    evidence = evidence_of(facts, replace(analyse(facts), cells=cells_of(given)))
    return list(drift(evidence))


def test_two_per_cent_beside_a_drift_of_sixteen_is_inconclusive() -> None:
    _, section = judged_speed(SPEC, passes())
    (word,) = section.comparisons
    assert word.word is SpeedWord.INCONCLUSIVE
    assert word.comparison.ratio.point == pytest.approx(1.015, abs=0.002)
    (closing,) = section.closing
    assert closing.ratio.point is not None
    assert closing.ratio.point < 0.9


@pytest.mark.parametrize(("factor", "doubted"), [(1.0, True), (1.35, True), (1.15, False)])
def test_the_reason_is_said_whichever_way_the_host_drifts(factor: float, doubted: bool) -> None:
    given = [replace(one, tok_s=one.tok_s * factor) if one.role is Role.CLOSING else one for one in passes()]
    found = drifts(given)
    assert [one.code for one in found] == [Code.DRIFT] * doubted
    assert all(one.severity is Severity.DOUBT and one.message.startswith("drift: ") for one in found)
    assert all("interleave" in one.hint for one in found)


def test_a_run_interleaves_its_arms_so_that_a_steady_drift_cancels() -> None:
    steady = [
        Pass(arm, 1, at // 2, 150.0 * 0.97**at) for at, arm in enumerate(("none", "k3", "k3", "none", "none", "k3"))
    ]
    speed, _ = judged_speed(SPEC, steady)
    assert speed.comparisons[0].ratio.interval is not None
    assert speed.comparisons[0].ratio.interval.contains(1.0)


def test_two_sessions_are_compared_only_with_a_warning_that_they_are_two() -> None:
    comparison = compare(*pair(), factor=Factor.BACKEND)
    assert "whatever else changed in between is in every ratio" in comparison.limits[0]
