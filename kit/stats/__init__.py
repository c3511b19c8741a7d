"""Numbers in, estimates out: no I/O, no clock, no global random state; seeds are arguments.

Functions named by the test vectors return plain numbers in exactly the shape of their vectors. Everything else returns
frozen dataclasses built from `Estimate`: a point, its interval and the count behind it, or the reason there is none.
"""

from __future__ import annotations

from kit.stats.acceptance import (
    Convention,
    Overshoot,
    Survival,
    SurvivalCurve,
    convention,
    detect_convention,
    last_round_bounds,
    macro,
    overshoot,
    pooled,
    survival,
    survival_curve,
)
from kit.stats.arrays import (
    histogram_matrix,
)
from kit.stats.errors import (
    StatsError,
)
from kit.stats.estimate import (
    Estimate,
    Interval,
)
from kit.stats.gates import (
    GateDecision,
    GateWord,
    gate_decision,
    min_prompts_zero_discordance,
    n_needed,
)
from kit.stats.intervals import (
    PairedDiff,
    RatioSe,
    Resampling,
    mean_interval,
    paired_ratio_diff,
    ratio_bootstrap,
    ratio_interval,
    ratio_intervals,
    ratio_se,
)
from kit.stats.lossless import (
    LosslessVerdict,
    TieMargin,
    cp_lower,
    cp_upper,
    divergence_class,
    first_divergence,
    lossless_verdict,
    tau_from_aa,
)
from kit.stats.multiplicity import (
    holm,
)
from kit.stats.speedup import (
    RatioInterval,
    crossover,
    log_ratio_ci,
)
from kit.stats.throughput import (
    SteadyWindow,
    Window,
    mser5,
    throughput_window,
    window,
)

__all__ = [
    "Convention",
    "Estimate",
    "GateDecision",
    "GateWord",
    "Interval",
    "LosslessVerdict",
    "Overshoot",
    "PairedDiff",
    "RatioInterval",
    "RatioSe",
    "Resampling",
    "StatsError",
    "SteadyWindow",
    "Survival",
    "SurvivalCurve",
    "TieMargin",
    "Window",
    "convention",
    "cp_lower",
    "cp_upper",
    "crossover",
    "detect_convention",
    "divergence_class",
    "first_divergence",
    "gate_decision",
    "histogram_matrix",
    "holm",
    "last_round_bounds",
    "log_ratio_ci",
    "lossless_verdict",
    "macro",
    "mean_interval",
    "min_prompts_zero_discordance",
    "mser5",
    "n_needed",
    "overshoot",
    "paired_ratio_diff",
    "pooled",
    "ratio_bootstrap",
    "ratio_interval",
    "ratio_intervals",
    "ratio_se",
    "survival",
    "survival_curve",
    "tau_from_aa",
    "throughput_window",
    "window",
]
