"""What a verdict must say about a world whose truth is known, run by run, and how often it may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kit.analysis import Oracle, OracleKind
from kit.stats import CrossoverKind, Estimate, GateWord, LosslessWord
from kit.verdict import Verdict

__all__ = ["Band", "Outcome", "Truth"]

LEVELS = (2, 4, 8)
DEPTH = 3


@dataclass(frozen=True, slots=True)
class Band:
    """The share of runs in which a claim must hold, and what the claim is."""

    lowest: float
    highest: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a claim held in one run."""

    claim: str
    held: bool


@dataclass(frozen=True, slots=True)
class Truth:
    """Expected values of a world, from runs without noise: log throughput and pooled curves, by arm and concurrency."""

    log_throughput: Mapping[tuple[str, int], float]
    survival: Mapping[tuple[str, int], tuple[float, ...]]

    def log_ratio(self, arm: str, concurrency: int) -> float:
        """Expected log ratio of an arm to the baseline."""
        return self.log_throughput[arm, concurrency] - self.log_throughput["baseline", concurrency]


def _coverage(what: str) -> Band:
    return Band(0.92, 0.98, f"the 95 % interval holds {what}")


def _holds(estimate: Estimate, truth: float) -> bool:
    return estimate.interval is not None and estimate.interval.contains(truth)


SPEED_BANDS = {
    **{f"ratio at {c}": _coverage(f"the true speed ratio at {c} requests at once") for c in LEVELS},
    **{f"throughput at {c}": _coverage(f"the arm's true throughput at {c}") for c in LEVELS},
    **{f"S_{k}": _coverage(f"the true S_{k} at 8 requests at once") for k in range(1, DEPTH + 1)},
    "tokens a round": _coverage("the true acceptance length at 8"),
    "crossover": Band(0.92, 0.99, "the confidence set of the crossover holds the true one"),
    "no false direction": Band(0.97, 1.0, "no level gets the word of the wrong side"),
    "ties are benign": Band(0.95, 1.0, "without a violation no divergence is called hard"),
    "violations are found": Band(0.95, 1.0, "with one violation a cell every comparison has a hard divergence"),
    "never lossless": Band(1.0, 1.0, "with violations no comparison is called lossless or benign"),
}


def speed(verdict: Verdict, truth: Truth, seed: int) -> Iterator[Outcome]:
    """Intervals of speed and acceptance, the crossover, and divergences told from violations."""
    arm = f"k{DEPTH}"
    for one in verdict.speed.comparisons:
        c, log_ratio = one.comparison.concurrency, truth.log_ratio(arm, one.comparison.concurrency)
        yield Outcome(f"ratio at {c}", _holds(one.comparison.ratio, math.exp(log_ratio)))
    for level in verdict.speed.levels:
        if level.arm == arm:
            expected = math.exp(truth.log_throughput[arm, level.concurrency])
            yield Outcome(f"throughput at {level.concurrency}", _holds(level.throughput_window, expected))
    (acceptance,) = (a for a in verdict.acceptance if a.concurrency == LEVELS[-1])
    curve = truth.survival[arm, LEVELS[-1]]
    for k, (estimate, expected) in enumerate(zip(acceptance.survival, curve, strict=True), 1):
        yield Outcome(f"S_{k}", _holds(estimate, expected))
    yield Outcome("tokens a round", _holds(acceptance.acceptance_length, 1 + sum(curve)))
    yield Outcome("crossover", _crossover_held(verdict, truth))
    yield Outcome("no false direction", not any(_false_direction(verdict, truth)))
    yield from _losslessness(verdict, seed)


def _crossover_held(verdict: Verdict, truth: Truth) -> bool:
    (found,) = verdict.speed.crossovers
    logs = [truth.log_ratio(f"k{DEPTH}", c) for c in LEVELS]
    at = next(
        math.exp(math.log(a) + math.log(b / a) * x / (x - y))
        for a, b, x, y in zip(LEVELS, LEVELS[1:], logs, logs[1:], strict=False)
        if x > 0 >= y
    )
    if found.result.crossing is CrossoverKind.INCONCLUSIVE and not found.result.confidence_set:
        return False
    return any(part.contains(at) for part in found.result.confidence_set)


def _false_direction(verdict: Verdict, truth: Truth) -> Iterator[bool]:
    for one in verdict.speed.comparisons:
        expected = truth.log_ratio(one.comparison.arm, one.comparison.concurrency)
        yield one.word.value == ("slower" if expected > 0 else "faster")


def violated(seed: int) -> int:
    """Violations a speculating cell in the run with that seed."""
    return seed % 2


def _losslessness(verdict: Verdict, seed: int) -> Iterator[Outcome]:
    rows = verdict.losslessness.rows
    if not violated(seed):
        yield Outcome("ties are benign", all(row.hard == 0 for row in rows))
        return
    yield Outcome("violations are found", all(row.hard > 0 for row in rows))
    benign = (LosslessWord.LOSSLESS, LosslessWord.BENIGN_DIVERGENCE)
    yield Outcome("never lossless", not any(row.word in benign for row in rows))


STILL_BANDS = {
    "v1 passes": Band(0.80, 1.0, "gate v1 passes (power of the equivalence test)"),
    "v1 fails": Band(0.0, 0.01, "gate v1 fails, falsely"),
    "v2 passes": Band(0.95, 1.0, "gate v2 passes"),
    "curve adds nothing": Band(
        0.84, 0.96, "the 90 % interval of the curve oracle's gap over a scalar, where reported, holds 0"
    ),
    "no gain found": Band(
        0.0, 0.09, "a replayed gap of the scalar over one K is found above 0, falsely (nominal 0.05)"
    ),
}
BOUNDARY_BANDS = {
    "v1 passes": Band(0.0, 0.08, "gate v1 passes at its margin (size, nominal 0.05)"),
    "v1 fails": Band(0.0, 0.05, "gate v1 fails at its margin (size)"),
    "v2 passes": Band(0.0, 0.08, "gate v2 passes at its margin (size, nominal 0.05)"),
    "v2 fails": Band(0.0, 0.08, "gate v2 fails at its margin (size, nominal 0.05)"),
}
MOVED_BANDS = {
    "v1 fails": Band(0.95, 1.0, "gate v1 fails (power)"),
    "v2 fails": Band(0.95, 1.0, "gate v2 fails (power)"),
    "oracles withheld": Band(1.0, 1.0, "no oracle is reported"),
}
TWO_KINDS_BANDS = {
    "v1 passes": Band(0.0, 0.01, "gate v1 passes, falsely: selection moves the curve"),
    "v2 passes": Band(0.95, 1.0, "gate v2 passes: at equal positions the draft is the same"),
    "curve oracle withheld": Band(0.99, 1.0, "the curve oracle is withheld"),
    "gain found": Band(0.90, 1.0, "the replayed gap of the scalar over one K at two requests at once is above 0"),
    "spread found": Band(0.99, 1.0, "the spread between requests is above 0"),
}


def still(verdict: Verdict, truth: Truth, seed: int) -> Iterator[Outcome]:
    """A world in which nothing moves and no choice of K gains."""
    yield from _words(verdict, "v1 passes", "v1 fails", "v2 passes")
    curve, replay = verdict.oracles
    for level in curve.levels:
        if level.gaps is not None and level.gaps.curve_over_scalar.interval is not None:
            yield Outcome("curve adds nothing", level.gaps.curve_over_scalar.interval.contains(0.0))
    yield from _gain(replay, "no gain found")


def boundary(verdict: Verdict, truth: Truth, seed: int) -> Iterator[Outcome]:
    """A world on the margin of both gates."""
    yield from _words(verdict, "v1 passes", "v1 fails", "v2 passes", "v2 fails")


def moved(verdict: Verdict, truth: Truth, seed: int) -> Iterator[Outcome]:
    """A world whose draft depends on K."""
    yield from _words(verdict, "v1 fails", "v2 fails")
    yield Outcome("oracles withheld", all(not oracle.levels for oracle in verdict.oracles))


def two_kinds(verdict: Verdict, truth: Truth, seed: int) -> Iterator[Outcome]:
    """A world whose requests differ, and whose draft does not depend on K."""
    yield from _words(verdict, "v1 passes", "v2 passes")
    curve, replay = verdict.oracles
    yield Outcome("curve oracle withheld", not curve.levels)
    yield from _gain(replay, "gain found")
    spreads = [one.spread.sd_between.interval for one in verdict.heterogeneity.spreads]
    yield Outcome("spread found", all(interval is not None and interval.lo > 0 for interval in spreads))


def _words(verdict: Verdict, *names: str) -> Iterator[Outcome]:
    gates = verdict.gate.gates
    found = {"v1": gates.v1.word, "v2": gates.v2.word}
    wanted = {"passes": GateWord.PASS, "fails": GateWord.FAIL}
    for name in names:
        gate, word = name.split()
        yield Outcome(name, found[gate] is wanted[word])


def _gain(oracle: Oracle, name: str) -> Iterator[Outcome]:
    """Whether the first gap at the lowest concurrency is found above 0; nothing where it is not reported."""
    if oracle.kind is OracleKind.REPLAY and oracle.levels and (gaps := oracle.levels[0].gaps) is not None:
        interval = gaps.scalar_over_static.interval
        yield Outcome(name, interval is not None and interval.lo > 0)
