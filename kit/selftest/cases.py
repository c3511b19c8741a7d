"""The worlds of the self-test: each is a spec, a world whose truth is known, and what must be found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kit.selftest import claims
from kit.selftest.claims import Band, Outcome, Truth
from kit.spec import Spec, canonical_json
from kit.standin.world import World
from kit.verdict import Verdict

__all__ = ["CASES", "Case"]

Judge = Callable[[Verdict, Truth, int], Iterable[Outcome]]
_COST = {"base_ms": 4.5, "position_ms": 0.5, "draft_ms": 0.2, "speculate_ms": 0.6, "row_ms": 0.0, "prefill_ms": 1.0}
_ALIKE = {"easy_prompts": 1.0, "easy_text": [1.0, 1.0], "accept": [0.6, 0.6]}
_REGIMES = {"easy_prompts": 0.5, "easy_text": [0.6, 0.4], "regime_tokens": 12, "accept": [0.93, 0.28]}
_TWO_KINDS = {"easy_prompts": 0.5, "easy_text": [1.0, 0.0], "accept": [0.95, 0.1]}
MARGIN = 0.04
"""Margin of both gates in these worlds: at 0.02 a run large enough to pass would cost a minute."""


@dataclass(frozen=True, slots=True)
class Case:
    """One world. `ties` lays near-ties over the outputs.

    `share` scales the number of replications: coverage needs them all, a size or a power can be told from fewer.
    """

    name: str
    about: str
    spec: Spec
    world: World
    judge: Judge
    bands: dict[str, Band] = field(repr=False)
    share: float = 1.0
    ties: bool = False


def _spec(name: str, *depths: int, **sections: Any) -> Spec:
    data = {
        "schema_version": 1,
        "name": name,
        "title": f"Self-test: {name}",
        "question": "Does the analysis find what is true in this world?",
        "models": {"target": {"path": "virtual/target", "dtype": "float32"}, "draft": {"path": "virtual/draft"}},
        "engine": {"runtime": "standin", "world": name},
        "server": {"attention_backend": "triton", "context_length": 512, "max_running_requests": 64},
        "arms": [
            {"kind": "baseline", "name": "baseline"},
            *({"kind": "eagle3", "name": f"k{depth}", "num_steps": depth, "topk": 1} for depth in depths),
        ],
        "workload": {"files": ["virtual.jsonl"], "prompts": 96, "min_output_tokens": 16, "max_output_tokens": 32},
        "load": {"concurrency": [2, 4, 8], "waves": 4, "min_requests": 16},
        "gate": {"bootstrap_draws": 500, "delta_1": MARGIN, "delta_2": MARGIN, "functional_limit": 0.05},
    }
    return Spec.model_validate_json(canonical_json(data | sections))


def _gated(name: str) -> Spec:
    """Two depths at two concurrencies, every prompt at both: 120 for each cell of the gates, 60 waves of two."""
    return _spec(
        name,
        1,
        3,
        workload={"files": ["virtual.jsonl"], "prompts": 120, "min_output_tokens": 24, "max_output_tokens": 32},
        load={"concurrency": [2, 8], "waves": 4, "min_requests": 120},
        design={"blocks": 1},
    )


def _world(name: str, draft: dict[str, Any], **noise: float) -> World:
    cost = _COST | {"prefill_token_ms": 0.0}
    return World.model_validate(
        {"name": name, "about": "a world of the self-test", "seed": 7, "draft": draft, "cost": cost, "noise": noise}
    )


CASES = (
    Case(
        "speed",
        "drafting helps two requests and costs eight; rounding flips near-ties, and every second run holds a violation "
        "in each speculating cell",
        _spec("speed", 3),
        _world("speed", _REGIMES),
        claims.speed,
        claims.SPEED_BANDS,
        ties=True,
    ),
    Case(
        "still",
        "all text is alike, so neither the curve nor the draft moves with K, and no choice of K gains",
        _gated("still"),
        _world("still", _ALIKE),
        claims.still,
        claims.STILL_BANDS,
        share=0.12,
    ),
    Case(
        "boundary",
        f"as still, but the draft is worse at K = 3 by exactly the margin of both gates, {MARGIN}",
        _gated("boundary"),
        _world("boundary", _ALIKE | {"shift": -3 * MARGIN}),
        claims.boundary,
        claims.BOUNDARY_BANDS,
        share=0.4,
    ),
    Case(
        "moved",
        f"as still, but the draft is worse at K = 3 by three margins, {3 * MARGIN}",
        _gated("moved"),
        _world("moved", _ALIKE | {"shift": -9 * MARGIN}),
        claims.moved,
        claims.MOVED_BANDS,
        share=0.06,
    ),
    Case(
        "two-kinds",
        "half the prompts are easy, half hard; the draft is the same at every K, and the curve moves by selection",
        _gated("two_kinds"),
        _world("two-kinds", _TWO_KINDS),
        claims.two_kinds,
        claims.TWO_KINDS_BANDS,
        share=0.06,
    ),
)
