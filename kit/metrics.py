"""The one table of metrics: what each printed number is called, in which unit, which way is better, and how it is made.

Reports, JSON, documentation and the glossary read this table; nobody else spells a label or a formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kit.format import COUNT, MILLIJOULES, MILLISECONDS, PERCENT, PLAIN, RATIO, SECONDS, SHARE, TOKENS_PER_SECOND, Unit

__all__ = ["METRICS", "Direction", "Metric", "metric"]


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"  # describes; nobody wins by it


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is the kit's own unit in values and JSON, `display` how a person reads it."""

    tag: str
    label: str
    unit: str
    display: Unit
    direction: Direction
    formula: str
    decides: bool = False


METRICS: Final = (
    Metric(
        "output_throughput_window",
        "Output throughput, steady window",
        "tok/s",
        TOKENS_PER_SECOND,
        Direction.HIGHER,
        "output tokens received while the set concurrency was in flight, divided by that time: from the first moment "
        "C requests are in flight to the last moment they are; refused without 2C completions in it",
        decides=True,
    ),
    Metric(
        "output_throughput_full_run",
        "Output throughput, full run",
        "tok/s",
        TOKENS_PER_SECOND,
        Direction.HIGHER,
        "all output tokens of successful requests, divided by the time from the first send to the last end, ramps "
        "included; for comparison with other tools",
    ),
    Metric(
        "trace_cost",
        "Throughput with the trace",
        "ratio",
        RATIO,
        Direction.NEITHER,
        "throughput over the full run with the iteration trace, divided by that without it, of neighbouring passes of "
        "one launch that send the same prompts; geometric mean over the pairs, with the t interval of the log",
    ),
    Metric(
        "speed_ratio",
        "Speed ratio",
        "ratio",
        RATIO,
        Direction.HIGHER,
        "window throughput of the arm divided by that of its baseline: geometric mean over blocks, with the t interval "
        "of the log ratio",
    ),
    Metric(
        "crossover",
        "Crossover concurrency",
        "requests",
        PLAIN,
        Direction.NEITHER,
        "first concurrency at which the mean log ratio, linear in log concurrency, crosses zero; its interval holds "
        "every concurrency at which zero is not rejected",
    ),
    Metric(
        "saturation_concurrency",
        "Saturation concurrency",
        "requests",
        COUNT,
        Direction.NEITHER,
        "smallest measured concurrency whose throughput is at least 95 % of the fitted maximum",
    ),
    Metric(
        "energy_per_token",
        "Energy per output token",
        "J",
        MILLIJOULES,
        Direction.LOWER,
        "what NVML's energy counters of all visible GPUs counted during the timed passes of a launch, divided by the "
        "output tokens of its successful requests: geometric mean over launches, with the t interval of the log; the "
        "host's own consumption is not in it",
    ),
    Metric(
        "ttft_s",
        "Time to first token (TTFT)",
        "s",
        MILLISECONDS,
        Direction.LOWER,
        "from sending a request to its first chunk that holds a token",
    ),
    Metric(
        "tpot_s",
        "Time per output token (TPOT)",
        "s",
        MILLISECONDS,
        Direction.LOWER,
        "(last token - first token, in time) / (output tokens - 1) of one request; undefined for one token or chunk",
    ),
    Metric(
        "e2e_latency_s",
        "End-to-end latency",
        "s",
        SECONDS,
        Direction.LOWER,
        "from sending a request to the last byte of its answer",
    ),
    Metric(
        "chunk_gap_s",
        "Gap between chunks",
        "s",
        MILLISECONDS,
        Direction.LOWER,
        "time between two chunks that hold tokens; under speculation a chunk holds several, so this is smoothness, not "
        "speed",
    ),
    Metric(
        "within_limits",
        "Requests within the limits",
        "fraction",
        PERCENT,
        Direction.HIGHER,
        "requests that ended well and kept every limit that the spec states, divided by all timed requests, failed "
        "ones included; mean over launches, with its t interval",
    ),
    Metric(
        "goodput",
        "Goodput",
        "requests/s",
        RATIO,
        Direction.HIGHER,
        "requests that ended well and kept every limit that the spec states, divided by the time from the first send "
        "to the last end; mean over launches, with its t interval",
    ),
    Metric(
        "achieved_concurrency",
        "Achieved concurrency",
        "requests",
        PLAIN,
        Direction.NEITHER,
        "sum of end-to-end latencies divided by the duration (Little's law); below the setting by the ramps",
    ),
    Metric(
        "failed_share",
        "Failed requests",
        "fraction",
        PERCENT,
        Direction.LOWER,
        "timed requests that did not end well, divided by all timed requests; none is retried",
    ),
    Metric(
        "survival",
        "Survival S_k",
        "fraction",
        SHARE,
        Direction.HIGHER,
        "verify rounds in which at least k drafts were accepted, divided by all verify rounds of one draft length K",
    ),
    Metric(
        "conditional_acceptance",
        "Conditional acceptance a_k",
        "fraction",
        SHARE,
        Direction.HIGHER,
        "S_k / S_(k-1): rounds that accepted draft k among those that accepted draft k - 1",
    ),
    Metric(
        "acceptance_length",
        "Acceptance length",
        "tokens",
        RATIO,
        Direction.HIGHER,
        "1 + accepted drafts / verify rounds: tokens per round with the bonus token, without the token of prefill",
    ),
    Metric(
        "tokens_per_position",
        "Tokens per verified position",
        "tokens",
        SHARE,
        Direction.HIGHER,
        "acceptance length / (K + 1): what one verified position yields",
    ),
    Metric(
        "iteration_s",
        "Iteration time",
        "s",
        MILLISECONDS,
        Direction.LOWER,
        "median time between consecutive decode results at one draft length and batch size, from the trace",
    ),
    Metric(
        "class_speed_ratio",
        "Speed ratio of a kind of prompt",
        "ratio",
        RATIO,
        Direction.HIGHER,
        "output tokens of a kind of prompt divided by the sum of its requests' latencies, arm divided by baseline: "
        "geometric mean over blocks, with the t interval of the log ratio; prefill and queueing are in it",
    ),
    Metric(
        "break_even_accepted",
        "Break-even",
        "drafts",
        RATIO,
        Direction.LOWER,
        "iteration time with speculation divided by that without, minus 1: accepted drafts a round that only just pay; "
        "iteration time is concurrency x acceptance length / throughput",
    ),
    Metric(
        "ceiling",
        "Ceiling",
        "ratio",
        RATIO,
        Direction.HIGHER,
        "(K + 1) divided by the ratio of iteration times: the speed ratio if every draft were accepted",
    ),
    Metric(
        "oracle_gap",
        "Oracle gap",
        "fraction",
        PERCENT,
        Direction.NEITHER,
        "throughput of a policy divided by that of the next simpler one, minus 1; decided on one half of each "
        "request's rounds and scored on the other, fitted and tested on batches without a common prompt",
    ),
    Metric(
        "spread_between",
        "Spread between requests",
        "drafts",
        RATIO,
        Direction.NEITHER,
        "standard deviation between requests of accepted drafts a round, without the noise inside a request (one-way "
        "random effects)",
    ),
    Metric(
        "split_half",
        "Split-half reliability",
        "correlation",
        RATIO,
        Direction.NEITHER,
        "correlation over prompts of S_1 in the first and in the second half of the text, corrected to the whole text "
        "by Spearman-Brown",
    ),
    Metric(
        "equal_outputs",
        "Equal outputs",
        "prompts",
        COUNT,
        Direction.HIGHER,
        "prompts whose output token ids are the same as the reference's, end included",
    ),
    Metric(
        "equal_lengths",
        "Equal lengths",
        "prompts",
        COUNT,
        Direction.NEITHER,
        "prompts whose outputs have the same number of tokens; proves little where outputs stop at a cap",
    ),
)

_BY_TAG: Final = {metric.tag: metric for metric in METRICS}


def metric(tag: str) -> Metric:
    """The metric of that tag; KeyError when there is none."""
    return _BY_TAG[tag]
