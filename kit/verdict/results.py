"""The verdict: a frozen tree of words, estimates and reasons that a report prints and a dumper writes as JSON.

It holds dataclasses, enums, tuples, None, strings, integers, floats and estimates, nothing else. Strings are names,
reasons or whole sentences; no number is hidden in formatting that a reader would have to parse back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.analysis import (
    Acceptance,
    AdaptiveUse,
    ArmSaturation,
    ArmSummary,
    Costs,
    DepthPace,
    Energy,
    FlagDifference,
    Gates,
    GpuConditions,
    Heterogeneity,
    Identities,
    IterationTime,
    LoadSwitch,
    Losslessness,
    Oracle,
    PeakComparison,
    Reconciliation,
    ServiceLevel,
    TraceCost,
    TraceHealth,
)
from kit.checks import CellJudgement, Doubt
from kit.records import LaunchStatus, Origin, Resumption, Role
from kit.sglang import TracePlugin
from kit.stats import LosslessWord
from kit.units import Seconds
from kit.verdict.speed_results import SpeedSection

__all__ = [
    "DoubtsSection",
    "GateSection",
    "Heading",
    "LaunchRow",
    "LosslessRow",
    "LosslessnessSection",
    "Named",
    "NotMeasured",
    "ServiceSection",
    "TracedBy",
    "Verdict",
    "WhatRan",
]

VERDICT_VERSION = 5
"""Version of this tree as JSON.

History: 1 = first form; 2 = cost, oracles, heterogeneity, classes, peaks, ties; 3 = K over time, load switches, GPUs;
4 = service; 5 = natural and synthetic content.
"""


class Heading(StrEnum):
    """Warnings that stand in the first lines of a report, in this order."""

    SIMULATED = "SIMULATED"
    IMPORTED = "IMPORTED"
    ATTACHED = "ATTACHED"
    ON_CPU = "REAL SGLANG ON CPU"
    PARTIAL = "PARTIAL"
    NOT_PINNED = "NOT PINNED"
    NOT_PRE_REGISTERED = "NOT PRE-REGISTERED"
    SYNTHETIC_CONTENT = "SYNTHETIC CONTENT"
    GATE_FAILED = "GATE FAILED"


@dataclass(frozen=True, slots=True)
class GateSection:
    """Whether a curve may be read across K; `sentence` is the row of the reporting table (method 2.6), in full."""

    gates: Gates
    sentence: str


@dataclass(frozen=True, slots=True)
class LosslessRow:
    """Outputs of one arm at one concurrency, held against the baseline's disagreement with itself.

    `control` is the comparison of the baseline with itself that served, None when there is none; `p_excess` is the
    one-sided Fisher p of diverging more often than it. `tau` is the widest margin of a tie. `hard` divergences are no
    tie; of these `violations` were asked again by prefill and stayed. `unresolved` ones lack a margin or that second
    look; `hard_upper` bounds the share of hard ones, one-sided 95 %. `past_the_end` counts prompts whose text is equal
    up to the reference's own end; they are in none of the other counts.
    """

    outputs: Losslessness
    word: LosslessWord
    reason: str
    control: Losslessness | None
    p_excess: float | None
    tau: float
    hard: int
    violations: int
    unresolved: int
    hard_upper: float | None
    past_the_end: int


@dataclass(frozen=True, slots=True)
class LosslessnessSection:
    """All comparisons of outputs and the baseline's disagreement with itself (`aa_tokens`)."""

    rows: tuple[LosslessRow, ...]
    aa_tokens: tuple[Losslessness, ...]
    greedy: bool


@dataclass(frozen=True, slots=True)
class DoubtsSection:
    """Cell states and every doubt, worst first."""

    cells: tuple[CellJudgement, ...]
    doubts: tuple[Doubt, ...]
    identities: tuple[Identities, ...]
    reconciliation: tuple[Reconciliation, ...]
    traces: tuple[TraceHealth, ...]
    flag_differences: tuple[FlagDifference, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A name and its value as text, for facts that are only printed."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One server start, as it happened."""

    launch: int
    block: int
    position: int
    arm: str
    role: Role
    status: LaunchStatus
    started_utc: str
    startup_s: Seconds | None
    command: tuple[str, ...]
    failure: str | None


@dataclass(frozen=True, slots=True)
class TracedBy:
    """Launches and the trace plugin that their servers named; None where they named none."""

    launches: tuple[int, ...]
    plugin: TracePlugin | None


@dataclass(frozen=True, slots=True)
class WhatRan:
    """Identity of the run: enough to repeat it or to refuse a comparison with it."""

    origin: Origin
    run_id: str
    spec_name: str
    spec_hash: str
    workload_hash: str
    rules_version: int
    kit_version: str
    created_utc: str
    spec_commit: str | None
    spec_committed_utc: str | None
    declarations: tuple[str, ...]
    resumptions: tuple[Resumption, ...]
    models: tuple[Named, ...]
    engine: tuple[Named, ...]
    host: tuple[Named, ...]
    arms: tuple[ArmSummary, ...]
    launches: tuple[LaunchRow, ...]
    iteration_times: tuple[IterationTime, ...]
    trace: tuple[TracedBy, ...]
    trace_costs: tuple[TraceCost, ...]
    gpus: tuple[GpuConditions, ...]
    energies: tuple[Energy, ...]


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Something a reader may look for and will not find, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class ServiceSection:
    """Latencies that the spec asks requests to keep, in words ("" without any), and the levels of both loads."""

    limits: str = ""
    levels: tuple[ServiceLevel, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to the spec's question, with everything that supports or weakens it."""

    version: int
    title: str
    question: str
    answer: str
    headings: tuple[Heading, ...]
    speed: SpeedSection
    gate: GateSection
    losslessness: LosslessnessSection
    saturation: tuple[ArmSaturation, ...]
    peaks: tuple[PeakComparison, ...]
    costs: Costs
    acceptance: tuple[Acceptance, ...]
    adaptive: tuple[AdaptiveUse, ...]
    oracles: tuple[Oracle, ...]
    switches: tuple[LoadSwitch, ...]
    heterogeneity: Heterogeneity
    depth_paces: tuple[DepthPace, ...]
    doubts: DoubtsSection
    what_ran: WhatRan
    limits: tuple[str, ...]
    not_measured: tuple[NotMeasured, ...]
    service: ServiceSection = ServiceSection()
