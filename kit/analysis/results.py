"""What analysis says about speed and about the run: one frozen value per question.

Every number is an `Estimate` (point, interval, count, method, reason for whatever is missing) or a plain count.
Units are in the names; ratios are arm / baseline. `None` never stands alone: a reason is beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.analysis.acceptance_results import Acceptance, AdaptiveUse, DepthPace, Gates, IterationTime
from kit.analysis.gpus import Energy, GpuConditions
from kit.analysis.heterogeneity_results import Heterogeneity
from kit.analysis.output_results import CellEvidence, Identities, Losslessness, Reconciliation, TraceHealth
from kit.records import Outcome, Role
from kit.stats import CrossoverKind, Estimate, Interval, PeakRatio, Saturation, SweepWord
from kit.units import Seconds, Tokens, TokensPerSecond

__all__ = [
    "AdaptiveShare",
    "Analysis",
    "ArmSaturation",
    "ArmSummary",
    "ArmSweep",
    "BlockRatio",
    "CellResult",
    "ClassComparison",
    "ClassSpeed",
    "Comparison",
    "CrossoverResult",
    "Distribution",
    "FlagClass",
    "FlagDifference",
    "LevelResult",
    "LoadSwitch",
    "OutcomeCount",
    "PeakComparison",
    "Speed",
    "TraceCost",
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
class ClassSpeed:
    """Requests of one workload class in a cell: their output tokens divided by the sum of their latencies."""

    prompt_class: str
    requests: int
    tok_s: TokensPerSecond


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
    classes: tuple[ClassSpeed, ...] = ()


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

    `ratio` (window, valid cells only) decides; `ratio_full_run` and `tpot_ratio` use every cell that has them and
    decide nothing. Each p is two-sided and unadjusted: that the ratio is above 1 + noise_threshold, below
    1 - noise_threshold, or between the two; 1 without an interval.
    """

    arm: str
    baseline: str
    concurrency: int
    ratio: Estimate
    ratio_full_run: Estimate
    tpot_ratio: Estimate
    blocks: tuple[BlockRatio, ...]
    p_faster: float
    p_slower: float
    p_equivalent: float


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """One workload class of an arm against its baseline's: ratio of `ClassSpeed`, paired in blocks; decides nothing."""

    arm: str
    baseline: str
    concurrency: int
    prompt_class: str
    ratio: Estimate


@dataclass(frozen=True, slots=True)
class CrossoverResult:
    """Concurrency at which an arm stops (or starts) being faster than its baseline (method 5.5).

    `concurrency` is the point with the hull of `confidence_set`, which may have several parts; `open_low` and
    `open_high` say that it reaches the lowest or highest measured level.
    """

    arm: str
    crossing: CrossoverKind
    concurrency: Estimate
    confidence_set: tuple[Interval, ...]
    open_low: bool
    open_high: bool
    range_low: int
    range_high: int


@dataclass(frozen=True, slots=True)
class ArmSweep:
    """Verdict class of one arm over all concurrencies, by the rule of method 5.5; `undecided` lists open levels."""

    arm: str
    baseline: str
    word: SweepWord
    undecided: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArmSaturation:
    """Where one arm's throughput stops growing with concurrency (method 5.4); its levels are in `Speed.levels`."""

    arm: str
    saturation: Saturation


@dataclass(frozen=True, slots=True)
class PeakComparison:
    """Fitted maximum of an arm against its baseline's, launch by launch, paired in blocks (method 5.4)."""

    arm: str
    baseline: str
    peaks: PeakRatio


@dataclass(frozen=True, slots=True)
class TraceCost:
    """Throughput with the trace over that without, in neighbouring passes of one launch, at one concurrency."""

    arm: str
    launch: int
    concurrency: int
    ratio: Estimate


@dataclass(frozen=True, slots=True)
class AdaptiveShare:
    """An adaptive arm against the best fixed one: `realised` is the share of its gain, on the log scale."""

    arm: str
    against_best: Estimate
    realised: Estimate


@dataclass(frozen=True, slots=True)
class LoadSwitch:
    """The fixed arm with the highest ratio at one concurrency, None where that is below 1; chosen after seeing."""

    baseline: str
    concurrency: int
    best: str | None
    ratio: Estimate
    adaptive: tuple[AdaptiveShare, ...]


@dataclass(frozen=True, slots=True)
class Speed:
    """Everything about speed that depends on which cells may be used."""

    levels: tuple[LevelResult, ...]
    comparisons: tuple[Comparison, ...]
    classes: tuple[ClassComparison, ...]
    sweeps: tuple[ArmSweep, ...]
    crossovers: tuple[CrossoverResult, ...]
    saturation: tuple[ArmSaturation, ...]
    peaks: tuple[PeakComparison, ...]
    aa_speed: tuple[Comparison, ...]
    closing: tuple[Comparison, ...]


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
    """Everything computed from the facts before any doubt. Speed follows later, from the cells that stay valid."""

    arms: tuple[ArmSummary, ...]
    cells: tuple[CellResult, ...]
    evidence: tuple[CellEvidence, ...]
    acceptance: tuple[Acceptance, ...]
    adaptive: tuple[AdaptiveUse, ...]
    heterogeneity: Heterogeneity
    depth_paces: tuple[DepthPace, ...]
    gates: Gates
    losslessness: tuple[Losslessness, ...]
    reconciliation: tuple[Reconciliation, ...]
    traces: tuple[TraceHealth, ...]
    identities: tuple[Identities, ...]
    iteration_times: tuple[IterationTime, ...]
    flag_differences: tuple[FlagDifference, ...]
    trace_costs: tuple[TraceCost, ...]
    gpus: tuple[GpuConditions, ...]
    energies: tuple[Energy, ...]
