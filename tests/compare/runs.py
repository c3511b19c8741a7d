"""Two runs of one spec on two attention backends, whose true difference is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from kit.records import RunFacts
from tests.builders import build_run, build_spec, eagle3

__all__ = ["CHEAPER", "headed", "on_backend", "pair"]

CHEAPER = 0.8
"""Iteration time of a speculating iteration on the second backend over that on the first; a plain one is the same."""


def _cost(depth: int, batch: int) -> float:
    """A plain iteration, and a fixed tax and a price a draft with speculation."""
    return 0.010 + 0.0002 * batch + (0.006 + 0.002 * depth if depth else 0.0)


def _cheaper(depth: int, batch: int) -> float:
    return _cost(depth, batch) * (CHEAPER if depth else 1.0)


def on_backend(backend: str, **sections: Any) -> RunFacts:
    """A run on that backend; Triton is the dearer one."""
    arms = [
        {"kind": "baseline", "name": "baseline"},
        *(eagle3(depth) for depth in (1, 3, 5)),
        {"kind": "adaptive", "name": "adaptive", "num_steps": 3},
    ]
    spec = build_spec(server={"attention_backend": backend}, name=f"on_{backend}", arms=arms, **sections)
    dearer = backend == "triton"
    facts = build_run(spec, cost=_cost if dearer else _cheaper, seed=1 if dearer else 2)
    day = "29" if dearer else "30"
    return headed(facts, run_id=f"run-{backend}", created_utc=f"2026-11-{day}T12:00:00+00:00")


def headed(facts: RunFacts, **changes: Any) -> RunFacts:
    """`facts` with another header."""
    return replace(facts, header=replace(facts.header, **changes))


@cache
def pair() -> tuple[RunFacts, RunFacts]:
    """Both runs, built once; facts are frozen, so tests may share them."""
    return on_backend("triton"), on_backend("flashinfer")
