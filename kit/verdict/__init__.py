"""The decision table: facts, doubts and the spec's rule in, words out. Pure."""

from kit.verdict.judge import judge
from kit.verdict.results import (
    VERDICT_VERSION,
    ArmVerdict,
    ComparisonVerdict,
    CrossoverVerdict,
    DoubtsSection,
    GateSection,
    Heading,
    LaunchRow,
    LosslessnessSection,
    LosslessRow,
    Named,
    NotMeasured,
    SpeedSection,
    TracedBy,
    TrueThroughput,
    Verdict,
    WhatRan,
)

__all__ = [
    "VERDICT_VERSION",
    "ArmVerdict",
    "ComparisonVerdict",
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
