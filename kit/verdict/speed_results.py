"""What a verdict says about speed: words, comparisons and the content that they rest on."""

from __future__ import annotations

from dataclasses import dataclass

from kit.analysis import CellResult, ClassComparison, Comparison, CrossoverResult, LevelResult
from kit.stats import SpeedWord, SweepWord
from kit.units import TokensPerSecond

__all__ = [
    "ArmVerdict",
    "ComparisonVerdict",
    "Content",
    "CrossoverVerdict",
    "SpeedSection",
    "TrueThroughput",
]


@dataclass(frozen=True, slots=True)
class ComparisonVerdict:
    """A comparison and its word; `reason` says why it is inconclusive.

    `p_adjusted` is Holm-adjusted over arms x levels, except for a candidate that the spec named. `tolerable` says
    whether the whole interval stays above the largest loss that the spec tolerates; None where it names none.
    """

    comparison: Comparison
    word: SpeedWord
    p_adjusted: float | None
    reason: str | None
    tolerable: bool | None


@dataclass(frozen=True, slots=True)
class ArmVerdict:
    """An arm over all levels. `undecided` lists the levels that keep it from a word; `sentence` says it in full."""

    arm: str
    baseline: str
    word: SweepWord
    undecided: tuple[int, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class TrueThroughput:
    """What a simulated world really does at one level, tokens per second."""

    arm: str
    concurrency: int
    tok_s: TokensPerSecond


@dataclass(frozen=True, slots=True)
class CrossoverVerdict:
    """A crossover beside the truth of the simulated world, where there is one.

    `truth_known` tells "the world has no crossover in range" (truth None) from "nobody knows". `covered` says
    whether the confidence set holds the truth; None without a truth, or where the set excludes nothing.
    """

    result: CrossoverResult
    truth_known: bool
    truth: float | None
    covered: bool | None


@dataclass(frozen=True, slots=True)
class Content:
    """Classes of prompts that were timed: natural text, and what was declared synthetic before the run."""

    natural: tuple[str, ...] = ()
    synthetic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpeedSection:
    """Who is faster. `noise_threshold`, `level` and `holm` state the rule that gave the words."""

    metric: str
    noise_threshold: float
    level: float
    holm: bool
    candidate: str | None
    arms: tuple[ArmVerdict, ...]
    comparisons: tuple[ComparisonVerdict, ...]
    classes: tuple[ClassComparison, ...]
    crossovers: tuple[CrossoverVerdict, ...]
    levels: tuple[LevelResult, ...]
    cells: tuple[CellResult, ...]
    aa_speed: tuple[Comparison, ...]
    closing: tuple[Comparison, ...]
    truth: tuple[TrueThroughput, ...]
    content: Content = Content()
