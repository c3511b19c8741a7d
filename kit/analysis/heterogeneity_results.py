"""What analysis says about how requests differ, and whether a curve belongs to its request (method 7)."""

from __future__ import annotations

from dataclasses import dataclass

from kit.stats import Estimate, Ownership, Spread

__all__ = ["CurveOwnership", "Heterogeneity", "RequestSpread"]


@dataclass(frozen=True, slots=True)
class RequestSpread:
    """Accepted drafts per round of one fixed chain at one concurrency, prompt against prompt.

    `spread` is over all prompts, `within_wave` inside the waves that ran together. `class_ratio` is the mean of
    `easiest` over that of `hardest`, both chosen by their means. `split_half` is the Spearman-Brown reliability of a
    prompt's S_1 over the two halves of its text.
    """

    arm: str
    concurrency: int
    depth: int
    prompts: int
    spread: Spread
    within_wave: Estimate
    class_ratio: Estimate
    easiest: str | None
    hardest: str | None
    split_half: Estimate


@dataclass(frozen=True, slots=True)
class CurveOwnership:
    """Shallowest against deepest chain at one concurrency, on disjoint halves of the text."""

    concurrency: int
    depth_a: int
    depth_b: int
    prompts: int
    ownership: Ownership


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """How requests differ; `ownership_reason` says why nothing is known across depths."""

    spreads: tuple[RequestSpread, ...]
    ownerships: tuple[CurveOwnership, ...]
    ownership_reason: str | None
