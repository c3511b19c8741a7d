"""What analysis says about speed and about the run: one frozen value per question.

Every number is an `Estimate` (point, interval, count, method, reason for whatever is missing) or a plain count.
Units are in the names; ratios are arm / baseline. `None` never stands alone: a reason is beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.analysis.acceptance_results import Acceptance, AdaptiveUse, Gates, IterationTime
from kit.analysis.output_results import Identities, Losslessness, Reconciliation
from kit.records import Outcome, Role
from kit.stats import Estimate, Interval
from kit.units import Seconds, Tokens, TokensPerSecond

__all__ = [
    "Analysis",
    "ArmSummary",
    "BlockRatio",
    "CellResult",
    "Comparison",
    "Crossing",
    "CrossoverResult",
    "Distribution",
    "FlagClass",
    "FlagDifference",
    "LevelResult",
    "OutcomeCount",
    "Saturation",
    "WindowSpan",
]


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """An arm as the spec describes it. `kind` is baseline, eagle3 or adaptive; `depth` is K, at launch if adaptive."""

    name: str
    kind: str
    depth: int | None
    topk: int | None
    baseline: str | None
    launches: int


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """How many timed requests of a cell ended like this; outcomes that did not occur are left out."""

    outcome: Outcome
    count: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and quantiles (linear interpolation) over `n` requests or gaps, in seconds; None with a reason."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """Steady-state window of a cell (method 5.1); times are seconds since its repetition began."""

    start_s: Seconds
    end_s: Seconds
    tokens: Tokens
    completions: int
    full_share: float


@dataclass(frozen=True, slots=True)
class CellResult:
    """The timed repetitions of one cell. Its throughputs carry no interval: one launch is one observation."""

    cell: int
    launch: int
    block: int
    arm: str
    role: Role
    concurrency: int
    requests: int
    waves: float
    outcomes: tuple[OutcomeCount, ...]
    failed: int
    output_tokens: Tokens
    throughput_window: Estimate
    throughput_full_run: Estimate
    window: WindowSpan | None
    achieved_concurrency: Estimate
    ttft_s: Distribution
    tpot_s: Distribution
    e2e_latency_s: Distribution
    chunk_gap_s: Distribution


@dataclass(frozen=True, slots=True)
class LevelResult:
    """One arm at one concurrency over its measuring launches: t intervals over launches, log scale (method 5.2)."""

    arm: str
    concurrency: int
    launches: int
    throughput_window: Estimate
    throughput_full_run: Estimate
    tpot_s: Estimate


@dataclass(frozen=True, slots=True)
class BlockRatio:
    """One block's pair of launches: arm and baseline throughput in the window, tokens per second."""

    block: int
    arm_tok_s: TokensPerSecond
    baseline_tok_s: TokensPerSecond


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm against its own baseline at one concurrency, paired in blocks.

    `ratio` (window) decides; `ratio_full_run` and `tpot_ratio` stand beside it. Each p is one-sided and unadjusted:
    the evidence that the ratio is above 1 + noise_threshold, below 1 - noise_threshold, or between the two; None
    without an interval.
    """

    arm: str
    baseline: str
    concurrency: int
    ratio: Estimate
    ratio_full_run: Estimate
    tpot_ratio: Estimate
    blocks: tuple[BlockRatio, ...]
    p_faster: float | None
    p_slower: float | None
    p_equivalent: float | None


class Crossing(StrEnum):
    """Whether the ratio crosses 1 within the measured concurrencies."""

    FOUND = "found"
    NONE_IN_RANGE = "none in range"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class CrossoverResult:
    """Concurrency at which an arm stops (or starts) being faster than its baseline (method 5.5).

    `concurrency` is the point with the hull of `confidence_set`, which may have several parts; `open_low` and
    `open_high` say that it reaches the lowest or highest measured level.
    """

    arm: str
    crossing: Crossing
    concurrency: Estimate
    confidence_set: tuple[Interval, ...]
    open_low: bool
    open_high: bool
    range_low: int
    range_high: int


@dataclass(frozen=True, slots=True)
class Saturation:
    """Throughput of one arm over concurrency. `concurrency` is where it reaches 95 % of its maximum (method 5.4)."""

    arm: str
    levels: tuple[LevelResult, ...]
    maximum_tok_s: Estimate
    concurrency: Estimate


class FlagClass(StrEnum):
    """What a difference in effective server configuration means for a comparison."""

    INTENDED = "intended"  # it is the difference between the arms, or the spec declares it
    HARMLESS = "harmless"  # names, ports, measured memory
    UNFAIR = "unfair"  # it moves speed and nobody asked for it


@dataclass(frozen=True, slots=True)
class FlagDifference:
    """One effective flag that differs between an arm's server and its baseline's; values as JSON text."""

    arm: str
    baseline: str
    flag: str
    arm_value: str
    baseline_value: str
    flag_class: FlagClass


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything computed from the facts, before any doubt or word."""

    arms: tuple[ArmSummary, ...]
    cells: tuple[CellResult, ...]
    levels: tuple[LevelResult, ...]
    comparisons: tuple[Comparison, ...]
    aa_speed: tuple[Comparison, ...]
    closing: tuple[Comparison, ...]
    crossovers: tuple[CrossoverResult, ...]
    saturation: tuple[Saturation, ...]
    acceptance: tuple[Acceptance, ...]
    adaptive: tuple[AdaptiveUse, ...]
    gates: Gates
    losslessness: tuple[Losslessness, ...]
    reconciliation: tuple[Reconciliation, ...]
    identities: tuple[Identities, ...]
    iteration_times: tuple[IterationTime, ...]
    flag_differences: tuple[FlagDifference, ...]
