"""The JSON holds every number in full and nothing that is not one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from kit.errors import SpeckitError
from kit.report import verdict_json
from kit.report.dump import as_json
from kit.stats import Estimate
from tests.report.samples import MOVED, VERDICT


def tree(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    return found


def test_the_first_key_is_the_version_of_the_schema() -> None:
    assert next(iter(tree(verdict_json(VERDICT)).items())) == ("schema_version", VERDICT.version)


def test_an_estimate_is_a_point_an_interval_a_count_a_method_and_a_reason() -> None:
    estimate = tree(verdict_json(VERDICT))["speed"]["comparisons"][0]["comparison"]["ratio"]
    assert estimate == {
        "point": 1.272,
        "interval": {"lo": 1.272 - 0.05, "hi": 1.272 + 0.05, "level": 0.95},
        "n": 3,
        "method": "t over launches, log scale",
        "reason": None,
    }


def test_a_missing_number_is_null_with_its_reason() -> None:
    assert as_json(Estimate.missing("nobody measured it"), path="x") == {
        "point": None,
        "interval": None,
        "n": 0,
        "method": "none",
        "reason": "nobody measured it",
    }


def test_words_are_the_values_of_their_enums() -> None:
    found = tree(verdict_json(VERDICT))
    assert found["headings"] == ["SIMULATED", "PARTIAL", "GATE FAILED"]
    assert found["what_ran"]["launches"][2]["role"] == "aa_speed"


def test_numbers_are_not_rounded() -> None:
    (found,) = tree(verdict_json(replace(VERDICT, limits=(), saturation=VERDICT.saturation[:1])))["saturation"]
    assert found["saturation"]["fit"]["sigma"] == 0.06
    third = as_json({"x": 1 / 3}, path="x")
    assert json.loads(json.dumps(third)) == {"x": 1 / 3}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_refused_by_name(value: float) -> None:
    assert MOVED.movement is not None
    movement = replace(MOVED, movement=replace(MOVED.movement, total=value))
    gates = replace(VERDICT.gate.gates, movements=(movement,))
    with pytest.raises(SpeckitError, match=r"verdict\.gate\.gates\.movements\[0\]\.movement\.total is -?(nan|inf)"):
        verdict_json(replace(VERDICT, gate=replace(VERDICT.gate, gates=gates)))


def test_what_json_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(SpeckitError, match="x is a object"):
        as_json(object(), path="x")


def test_the_same_verdict_gives_the_same_text() -> None:
    assert verdict_json(VERDICT) == verdict_json(VERDICT)
    assert verdict_json(VERDICT).endswith("}\n")
