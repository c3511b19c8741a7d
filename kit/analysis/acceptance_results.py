"""What analysis says about drafts: acceptance, adaptive depth, iteration times and the two gates.

Positions k run from 1; a tuple over positions has entry k - 1. Populations are named: pooled is over verify rounds,
macro over requests. S_k = P(at least k drafts accepted), a_k = S_k / S_{k-1} (method 1.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.stats import (
    AdaptiveDepth,
    AlignmentGate,
    Convention,
    ConversionResidual,
    CurveGate,
    Estimate,
    GateReading,
    Movement,
)
from kit.units import Seconds

__all__ = [
    "Acceptance",
    "AdaptiveUse",
    "ClassAcceptance",
    "DepthPace",
    "DepthShare",
    "DepthSource",
    "DepthSpan",
    "DepthTime",
    "GateMovement",
    "GateResidual",
    "Gates",
    "IterationTime",
    "LaunchIterationTime",
]


@dataclass(frozen=True, slots=True)
class ClassAcceptance:
    """Acceptance length and S_1 of one workload class, pooled over its rounds."""

    prompt_class: str
    prompts: int
    rounds: int
    acceptance_length: Estimate
    survival_1: Estimate


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One speculating arm at one concurrency, from the requests whose histograms are whole.

    For a fixed K the tuples have K entries. For an adaptive arm they hold S_1 alone, or nothing where even that is only
    bounded, and `bounds` holds every position: shallow rounds never proposed the deep ones, so there are only Manski
    bounds, and Kaplan-Meier under an assumption that a controller breaks (method 1.4); `tokens_per_position` is then
    missing. With `topk` above 1, k is a depth of
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
    """What the controller did. `concurrency` None is the whole launch, warm-up and health checks included.

    `seconds` lie between the first result and the last, pauses included.
    """

    arm: str
    launch: int
    concurrency: int | None
    iterations: int
    switches: int
    seconds: Seconds
    depths: tuple[DepthShare, ...]


class DepthSource(StrEnum):
    """What tells which K was in force when."""

    TRACE = "trace"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class DepthTime:
    """Share of the time of a launch for which K was this."""

    depth: int
    share: float


@dataclass(frozen=True, slots=True)
class DepthSpan:
    """A stretch of a launch, in seconds since its first iteration, and the shares of its busy time by K."""

    since_s: Seconds
    until_s: Seconds
    times: tuple[DepthTime, ...]


@dataclass(frozen=True, slots=True)
class DepthPace:
    """How restless K was in one launch. `undone` changes went back to the K before the last one.

    `dwell_s` is the mean time between two changes, idle time included; None with fewer than two. A log has whole
    seconds. `timeline` cuts a traced launch into equal stretches; those without an iteration are left out.
    """

    arm: str
    launch: int
    source: DepthSource
    changes: int
    undone: int
    dwell_s: Seconds | None
    times: tuple[DepthTime, ...]
    timeline: tuple[DepthSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class IterationTime:
    """Median time between consecutive results at one K (None: no speculation) and batch size within an arm."""

    arm: str
    depth: int | None
    batch_size: int
    n: int
    median_s: Seconds


@dataclass(frozen=True, slots=True)
class LaunchIterationTime:
    """The same within one launch: what launches differ in is the unit of every interval."""

    launch: int
    depth: int | None
    batch_size: int
    n: int
    median_s: Seconds


@dataclass(frozen=True, slots=True)
class GateMovement:
    """Why P(position 1 accepted) differs between two depths at one concurrency (method 2.4); None without sites."""

    concurrency: int
    depth_a: int
    depth_b: int
    movement: Movement | None


@dataclass(frozen=True, slots=True)
class GateResidual:
    """Curve measured at a shallower depth against the one a depth-free draft must have there (method 1.6, v1c)."""

    concurrency: int
    residual: ConversionResidual


@dataclass(frozen=True, slots=True)
class Gates:
    """Both gates over the pooled blocks, and what they allow to be reported.

    v1 (curves across K) decides; v2 (same prompt, same position) explains and may withhold. `naive_passes` is the
    legacy rule, for the record; `functional_within` says whether every functional error has its upper limit within
    `functional_limit`. `prompts_needed` is set when exact concordance on too few prompts is all that keeps v2 open.
    """

    v1: CurveGate
    v2: AlignmentGate
    reading: GateReading
    margin_1: float
    margin_2: float
    legacy_tolerance: float
    naive_passes: bool | None
    functional_limit: float
    functional_within: bool
    prompts_needed: int | None
    control: str
    movements: tuple[GateMovement, ...]
    residuals: tuple[GateResidual, ...]
