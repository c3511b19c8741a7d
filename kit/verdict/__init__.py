"""The decision table: facts, doubts and the spec's rule in, words out. Pure."""

from kit.verdict.judge import judge
from kit.verdict.results import (
    VERDICT_VERSION,
    DoubtsSection,
    GateSection,
    Heading,
    LaunchRow,
    LosslessnessSection,
    LosslessRow,
    Named,
    NotMeasured,
    TracedBy,
    Verdict,
    WhatRan,
)
from kit.verdict.speed_results import (
    ArmVerdict,
    ComparisonVerdict,
    Content,
    CrossoverVerdict,
    SpeedSection,
    TrueThroughput,
)

__all__ = [
    "VERDICT_VERSION",
    "ArmVerdict",
    "ComparisonVerdict",
    "Content",
    "CrossoverVerdict",
    "DoubtsSection",
    "GateSection",
    "Heading",
    "LaunchRow",
    "LosslessRow",
    "LosslessnessSection",
    "Named",
    "NotMeasured",
    "SpeedSection",
    "TracedBy",
    "TrueThroughput",
    "Verdict",
    "WhatRan",
    "judge",
]
