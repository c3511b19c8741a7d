"""Whatever the facts are, a verdict is made of finite numbers and reasons, and their order changes nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kit.records import RequestRecord, RunFacts
from kit.report import verdict_json
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3, edit_requests

# A verdict takes a while: few examples, and a failing one is not made smaller.
FEW = settings(max_examples=4, deadline=None, phases=(Phase.explicit, Phase.generate))


@cache
def small_run() -> RunFacts:
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "baseline"}, eagle3(1), eagle3(3)],
        workload={"prompts": 24, "min_output_tokens": 12, "max_output_tokens": 20},
        load={"concurrency": [2], "waves": 4, "min_requests": 8},
        gate={"bootstrap_draws": 50},
    )
    return build_run(spec)


def judged(facts: RunFacts) -> dict[str, Any]:
    """The verdict as JSON, which refuses whatever is no finite number."""
    found: dict[str, Any] = json.loads(verdict_json(judge(facts)))
    return found


@cache
def untouched() -> dict[str, Any]:
    return judged(small_run())


def different(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two trees differ by more than the last digits of a sum."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [bad for name in one for bad in different(one[name], other[name], f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            bad for at, pair in enumerate(zip(one, other, strict=True)) for bad in different(*pair, f"{path}[{at}]")
        ]
    if isinstance(one, float) and isinstance(other, float):
        return [] if math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) else [path]
    return [] if one == other else [path]


def missing_without_reason(tree: Any, path: str = "") -> list[str]:
    """Estimates in the tree that lack point or interval and say nothing about it."""
    if isinstance(tree, list):
        return [bad for at, item in enumerate(tree) for bad in missing_without_reason(item, f"{path}[{at}]")]
    if not isinstance(tree, dict):
        return []
    if {"point", "interval", "reason"} <= tree.keys():
        silent = (tree["point"] is None or tree["interval"] is None) and not tree["reason"]
        return [path] if silent else []
    return [bad for name, item in tree.items() for bad in missing_without_reason(item, f"{path}.{name}")]


@FEW
@given(seed=st.integers(0, 10_000))
def test_the_order_of_requests_changes_nothing(seed: int) -> None:
    facts = small_run()
    order = np.random.default_rng(seed).permutation(len(facts.requests))
    shuffled = judged(replace(facts, requests=tuple(facts.requests[i] for i in order)))
    assert different(shuffled, untouched()) == []


@FEW
@given(seed=st.integers(0, 10_000), share=st.floats(0.0, 1.0))
def test_any_part_of_the_requests_gives_finite_numbers_or_reasons(seed: int, share: float) -> None:
    facts = small_run()
    kept = np.random.default_rng(seed).random(len(facts.requests)) < share
    part = tuple(request for request, keep in zip(facts.requests, kept, strict=True) if keep)
    assert missing_without_reason(judged(replace(facts, requests=part))) == []


@pytest.mark.parametrize("requests", [0, 1])
def test_no_request_and_one_request_give_reasons(requests: int) -> None:
    tree = judged(replace(small_run(), requests=small_run().requests[:requests]))
    assert missing_without_reason(tree) == []
    assert all(one["ratio"]["interval"] is None for one in (c["comparison"] for c in tree["speed"]["comparisons"]))


@pytest.mark.parametrize("damage", ["mass beyond K", "one round too many", "no histogram"])
def test_a_histogram_that_cannot_be_is_left_out_and_named(damage: str) -> None:
    def broken(request: RequestRecord) -> RequestRecord:
        histogram = request.histogram or ()
        changed = {
            "mass beyond K": (*histogram, *[0] * (6 - len(histogram)), 1),
            "one round too many": (histogram[0] + 1, *histogram[1:]),
            "no histogram": None,
        }[damage]
        return replace(request, histogram=changed)

    verdict = judge(edit_requests(small_run(), broken, arm="eagle3_k3", first=1))
    (acceptance,) = (a for a in verdict.acceptance if a.arm == "eagle3_k3")
    assert acceptance.dropped == 1 and acceptance.dropped_reasons
    assert any(one.arm == "eagle3_k3" for one in verdict.doubts.identities)
