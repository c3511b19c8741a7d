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
    optional,
)
from kit.stats.censoring import (
    AdaptiveDepth,
    DepthRow,
    adaptive_curve,
    ipcw,
    ipcw_estimate,
    km,
    proposal_counts,
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
from kit.stats.rounds import (
    Reconciled,
    Reconciliation,
    Rounds,
    reconcile,
    reconcile_rounds,
    starts,
)
from kit.stats.selection import (
    ConversionResidual,
    Converted,
    Mixture,
    Walks,
    conversion_residuals,
    convert,
    markov_q,
    mixture,
    walk,
    walk_texts,
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
    "AdaptiveDepth",
    "Convention",
    "ConversionResidual",
    "Converted",
    "DepthRow",
    "Estimate",
    "GateDecision",
    "GateWord",
    "Interval",
    "LosslessVerdict",
    "Mixture",
    "Overshoot",
    "PairedDiff",
    "RatioInterval",
    "RatioSe",
    "Reconciled",
    "Reconciliation",
    "Resampling",
    "Rounds",
    "StatsError",
    "SteadyWindow",
    "Survival",
    "SurvivalCurve",
    "TieMargin",
    "Walks",
    "Window",
    "adaptive_curve",
    "convention",
    "conversion_residuals",
    "convert",
    "cp_lower",
    "cp_upper",
    "crossover",
    "detect_convention",
    "divergence_class",
    "first_divergence",
    "gate_decision",
    "histogram_matrix",
    "holm",
    "ipcw",
    "ipcw_estimate",
    "km",
    "last_round_bounds",
    "log_ratio_ci",
    "lossless_verdict",
    "macro",
    "markov_q",
    "mean_interval",
    "min_prompts_zero_discordance",
    "mixture",
    "mser5",
    "n_needed",
    "optional",
    "overshoot",
    "paired_ratio_diff",
    "pooled",
    "proposal_counts",
    "ratio_bootstrap",
    "ratio_interval",
    "ratio_intervals",
    "ratio_se",
    "reconcile",
    "reconcile_rounds",
    "starts",
    "survival",
    "survival_curve",
    "tau_from_aa",
    "throughput_window",
    "walk",
    "walk_texts",
    "window",
]
