"""Every published test vector of the statistical method, one test each."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

import kit.stats

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "method_vectors.json").read_text())["vectors"]


def function(name: str) -> Any:
    # The pre-registration hash belongs to the spec; everything else is a statistic.
    return importlib.import_module("kit.spec").prereg_hash if name == "prereg_hash" else getattr(kit.stats, name)


def agrees(got: Any, expected: Any, tol: float) -> bool:
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(agrees(got[key], expected[key], tol) for key in expected)
    if isinstance(expected, list):
        return len(got) == len(expected) and all(agrees(*pair, tol) for pair in zip(got, expected, strict=True))
    if expected is None or isinstance(expected, bool | str):
        return type(got) is type(expected) and bool(got == expected)
    return got is not None and math.isclose(got, expected, rel_tol=tol, abs_tol=tol)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_the_function_reproduces_its_vector(vector: dict[str, Any]) -> None:
    call, expected = function(vector["fn"]), vector["expected"]
    if isinstance(expected, dict) and expected.keys() == {"raises"}:
        assert expected["raises"] == "ValueError"
        with pytest.raises(ValueError):
            call(**vector["input"])
        return
    got = call(**vector["input"])
    assert agrees(got, expected, vector["tol"]), f"{got} is not {expected}"


def test_all_84_vectors_are_there() -> None:
    assert len({vector["id"] for vector in VECTORS}) == 84
