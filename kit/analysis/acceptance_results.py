"""What analysis says about drafts: acceptance, adaptive depth, iteration times and the two gates.

Positions k run from 1; a tuple over positions has entry k - 1. Populations are named: pooled is over verify rounds,
macro over requests. S_k = P(at least k drafts accepted), a_k = S_k / S_{k-1} (method 1.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.stats import AdaptiveDepth, Convention, Estimate, GateWord
from kit.units import Seconds

__all__ = [
    "Acceptance",
    "AdaptiveUse",
    "ClassAcceptance",
    "DepthShare",
    "FunctionalError",
    "Gate1",
    "Gate1Cell",
    "Gate2",
    "Gate2Cell",
    "Gates",
    "IterationTime",
]


@dataclass(frozen=True, slots=True)
class ClassAcceptance:
    """Acceptance length and S_1 of one workload class, pooled over its rounds."""

    prompt_class: str
    requests: int
    rounds: int
    acceptance_length: Estimate
    survival_1: Estimate


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One speculating arm at one concurrency, from the requests whose histograms are whole.

    For a fixed K the tuples have K entries. For an adaptive arm they hold S_1 alone and `bounds` holds every position:
    shallow rounds never proposed the deep ones, so there are only Manski bounds, and Kaplan-Meier under an assumption
    that a controller breaks (method 1.4); `tokens_per_position` is then missing. With `topk` above 1, k is a depth of
    a tree, not a position of a chain.
    """

    arm: str
    concurrency: int
    adaptive: bool
    depth: int
    topk: int
    requests: int
    dropped: int
    dropped_reasons: tuple[str, ...]
    rounds: int
    convention: Convention
    survival: tuple[Estimate, ...]
    survival_macro: tuple[Estimate, ...]
    conditional: tuple[Estimate, ...]
    acceptance_length: Estimate
    acceptance_length_macro: Estimate
    tokens_per_position: Estimate
    bounds: tuple[AdaptiveDepth, ...]
    classes: tuple[ClassAcceptance, ...]


@dataclass(frozen=True, slots=True)
class DepthShare:
    """How much of an adaptive arm ran at one K: iterations, and request rounds in them."""

    depth: int
    iterations: int
    iteration_share: float
    rounds: int
    round_share: float


@dataclass(frozen=True, slots=True)
class AdaptiveUse:
    """What the controller did. `concurrency` None is the whole launch, warm-up and health checks included."""

    arm: str
    launch: int
    concurrency: int | None
    iterations: int
    switches: int
    depths: tuple[DepthShare, ...]


@dataclass(frozen=True, slots=True)
class IterationTime:
    """Median time between consecutive results at one K (None: no speculation) and batch size within an arm."""

    arm: str
    depth: int | None
    batch_size: int
    n: int
    median_s: Seconds


@dataclass(frozen=True, slots=True)
class Gate1Cell:
    """S_k at two depths, same prompts: `difference` = S_k(depth_a) - S_k(depth_b) with its 90 % interval."""

    concurrency: int
    depth_a: int
    depth_b: int
    k: int
    prompts: int
    difference: Estimate
    p_exceeds: float | None
    inside: bool
    n_needed: int | None


@dataclass(frozen=True, slots=True)
class FunctionalError:
    """Error of tokens per round when the deepest curve is read at a shallower depth (method 2.2), as a fraction."""

    concurrency: int
    depth: int
    deepest: int
    error: Estimate


@dataclass(frozen=True, slots=True)
class Gate1:
    """Gate v1 (pre-registered, decides). `worst` indexes `cells`; `legacy_pass` is the naive rule, for the record."""

    word: GateWord | None
    reason: str | None
    margin: float
    cells: tuple[Gate1Cell, ...]
    worst: int | None
    functional: tuple[FunctionalError, ...]
    functional_limit: float
    functional_ok: bool | None
    legacy_tolerance: float
    legacy_pass: bool | None


@dataclass(frozen=True, slots=True)
class Gate2Cell:
    """Position-aligned difference at one (depth pair, k, concurrency). `control` marks two captures at the same K.

    `bound` limits |d2| one-sided; `up` and `down` are the discordant sites in each direction.
    """

    concurrency: int
    arm_a: str
    arm_b: str
    k: int
    control: bool
    prompts: int
    sites: int
    aligned_share: float
    discordant_prompts: int
    up: int
    down: int
    difference: Estimate
    bound: float | None
    rule: str
    inside: bool
    p_exceeds: float | None


@dataclass(frozen=True, slots=True)
class Gate2:
    """Gate v2 (explains, may veto). `prompts_needed` is set when exact concordance is all that is missing."""

    word: GateWord | None
    reason: str | None
    margin: float
    cells: tuple[Gate2Cell, ...]
    control: tuple[Gate2Cell, ...]
    prompts_needed: int | None


@dataclass(frozen=True, slots=True)
class Gates:
    """Both gates over the pooled blocks."""

    v1: Gate1
    v2: Gate2
