"""Service: requests within the limits that the spec states, and what became of load that arrived by the clock.

Shares and rates are taken launch by launch, and their intervals are over launches. Failed requests count as asked for
and never as good. A level that the server could not keep up with is called saturated and has neither latencies nor
goodput: they would depend on the length of the pass. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from kit.analysis.index import Index
from kit.records import Launch, LaunchStatus, Outcome, Phase, RequestRecord, Role
from kit.spec import Limits
from kit.stats import Estimate, Interval, mean_over_blocks
from kit.units import NS_PER_S, Seconds

__all__ = ["ServiceLevel", "fell_behind", "is_good", "service_levels"]

OVER_LAUNCHES = "t over launches"
LOG_OVER_LAUNCHES = "t on the log over launches"
MIN_KEPT_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """One arm at one level over its launches. Exactly one of `concurrency` and `per_second` (offered) is set.

    `saturated` counts the launches in which the server fell behind, `left_out` says why other cells do not enter.
    `within` is the share of requests inside all limits and `goodput` their number a second.
    """

    arm: str
    concurrency: int | None
    per_second: float | None
    launches: int
    requests: int
    saturated: int
    left_out: tuple[str, ...]
    completed_per_s: Estimate
    throughput: Estimate
    ttft_s: Estimate
    ttft_p99_s: Estimate
    tpot_s: Estimate
    e2e_latency_s: Estimate
    e2e_p99_s: Estimate
    within: Estimate
    goodput: Estimate


@dataclass(frozen=True, slots=True)
class _Pass:
    """One cell that may be used: its requests and whether the server fell behind."""

    requests: tuple[RequestRecord, ...]
    behind: bool

    @property
    def ok(self) -> list[RequestRecord]:
        return [request for request in self.requests if request.outcome is Outcome.OK]

    @property
    def duration_s(self) -> Seconds:
        begin = min(request.sent_ns for request in self.requests)
        return (max(request.ended_ns for request in self.requests) - begin) / NS_PER_S


Key = tuple[str, int | None, float | None]


def service_levels(index: Index, *, unfit: Mapping[int, str]) -> tuple[ServiceLevel, ...]:
    """Levels in the order arm, concurrency, offered rate; empty where the spec asks for neither limits nor rates.

    `unfit` are cells that must not enter, each with the reason.
    """
    limits = index.spec.load.limits
    passes: dict[Key, list[_Pass]] = {}
    left_out: dict[Key, list[str]] = {}
    for key, cell, requests in _cells(index):
        if key[2] is None and limits is None:
            continue
        passes.setdefault(key, [])
        if cell in unfit:
            left_out.setdefault(key, []).append(unfit[cell])
        else:
            passes[key].append(_Pass(requests, key[2] is not None and fell_behind(requests)))
    order = {arm.name: at for at, arm in enumerate(index.spec.arms)}
    keys = sorted(passes, key=lambda key: (order[key[0]], key[2] or 0.0, key[1] or 0))
    level = index.spec.decision.confidence_level
    return tuple(_level(key, passes[key], left_out.get(key, []), limits, level) for key in keys)


def is_good(request: RequestRecord, limits: Limits) -> bool:
    """Whether a request ended well and inside every limit that is stated; one token has no time a token."""
    if request.outcome is not Outcome.OK:
        return False
    found = ((_ttft(request), limits.ttft_s), (_tpot(request), limits.tpot_s), (_e2e(request), limits.e2e_s))
    return all(limit is None or value is None or value <= limit for value, limit in found)


def fell_behind(requests: Sequence[RequestRecord]) -> bool:
    """Whether, in the second half of the schedule, more was left undone than chance explains.

    Arrivals and ends are counted from the middle request's due time to the last one's. A server in equilibrium ends as
    many as arrive, give or take the square root that a Poisson count has.
    """
    due = sorted(request.sent_ns for request in requests)
    start, end = due[len(due) // 2], due[-1]
    arrived = sum(start < at <= end for at in due)
    ended = sum(start < request.ended_ns <= end for request in requests)
    return ended < MIN_KEPT_SHARE * arrived and arrived - ended > 2 * sqrt(max(arrived, 1))


def _cells(index: Index) -> Iterator[tuple[Key, int, tuple[RequestRecord, ...]]]:
    by_repetition: dict[int, list[RequestRecord]] = {}
    for request in index.facts.requests:
        by_repetition.setdefault(request.repetition, []).append(request)
    for repetition in index.facts.repetitions:
        cell = index.cells[repetition.cell]
        launch = index.launches[cell.launch]
        offered = repetition.client.get("per_second") if repetition.phase is Phase.OFFERED else None
        counts = repetition.phase is Phase.TIMED or offered is not None
        if counts and _usable(index, launch) and (requests := by_repetition.get(repetition.repetition)):
            concurrency = None if offered is not None else cell.concurrency
            yield (launch.arm, concurrency, offered), cell.cell, tuple(requests)


def _usable(index: Index, launch: Launch) -> bool:
    void = launch.status is LaunchStatus.VOID or launch.launch in index.begun_again
    return launch.role is Role.MEASURE and not void


def _level(
    key: Key, passes: Sequence[_Pass], left_out: Sequence[str], limits: Limits | None, level: float
) -> ServiceLevel:
    arm, concurrency, per_second = key
    steady = [one for one in passes if not one.behind]
    behind = len(passes) - len(steady)
    missing = f"saturated in {behind} of {len(passes)} launches" if behind else None

    def latency(of: Callable[[RequestRecord], Seconds | None], quantile: float) -> Estimate:
        if missing:
            return Estimate.missing(missing, method=LOG_OVER_LAUNCHES)
        return _positive([_quantile(one.ok, of, quantile) for one in steady], level)

    def counted(per: Callable[[_Pass], float], most: float | None) -> Estimate:
        if missing:
            return Estimate.missing(missing, method=OVER_LAUNCHES)
        return _counted(steady, limits, per, level=level, most=most)

    return ServiceLevel(
        arm=arm,
        concurrency=concurrency,
        per_second=per_second,
        launches=len(passes),
        requests=sum(len(one.requests) for one in passes),
        saturated=behind,
        left_out=tuple(dict.fromkeys(left_out)),
        completed_per_s=_positive([len(one.ok) / one.duration_s for one in passes], level),
        throughput=_positive([_tokens(one) / one.duration_s for one in passes], level),
        ttft_s=latency(_ttft, 0.5),
        ttft_p99_s=latency(_ttft, 0.99),
        tpot_s=latency(_tpot, 0.5),
        e2e_latency_s=latency(_e2e, 0.5),
        e2e_p99_s=latency(_e2e, 0.99),
        within=counted(lambda one: float(len(one.requests)), 1.0),
        goodput=counted(lambda one: one.duration_s, None),
    )


def _counted(
    passes: Sequence[_Pass],
    limits: Limits | None,
    per: Callable[[_Pass], float],
    *,
    level: float,
    most: float | None,
) -> Estimate:
    """Good requests over `per`, launch by launch."""
    if limits is None:
        return Estimate.missing("the spec states no limits (load.limits)", method=OVER_LAUNCHES)
    values = [sum(is_good(request, limits) for request in one.requests) / per(one) for one in passes]
    found = _named(mean_over_blocks(values, method=OVER_LAUNCHES, level=level), len(values))
    if found.interval is None:
        return found
    low, high = max(found.interval.lo, 0.0), found.interval.hi
    return replace(found, interval=Interval(low, high if most is None else min(high, most), found.interval.level))


def _positive(values: Sequence[float | None], level: float) -> Estimate:
    """Geometric mean over launches of what is known and positive."""
    known = [log(value) for value in values if value is not None and value > 0]
    return _named(mean_over_blocks(known, method=LOG_OVER_LAUNCHES, level=level), len(known)).mapped(exp)


def _named(estimate: Estimate, launches: int) -> Estimate:
    if estimate.interval is not None:
        return estimate
    reason = f"{launches} of the 3 launches that an interval needs" if launches else "no launch has this number"
    return replace(estimate, reason=reason)


def _quantile(
    requests: Sequence[RequestRecord], of: Callable[[RequestRecord], Seconds | None], quantile: float
) -> float | None:
    known = [value for request in requests if (value := of(request)) is not None]
    return float(np.quantile(known, quantile)) if known else None


def _tokens(one: _Pass) -> int:
    return sum(request.completion_tokens or 0 for request in one.ok)


def _ttft(request: RequestRecord) -> Seconds | None:
    return None if request.first_token_ns is None else (request.first_token_ns - request.sent_ns) / NS_PER_S


def _tpot(request: RequestRecord) -> Seconds | None:
    tokens, first = request.completion_tokens or 0, request.first_token_ns
    if first is None or tokens < 2 or not len(request.chunk_ns) or request.chunk_ns[-1] <= first:
        return None
    return (int(request.chunk_ns[-1]) - first) / NS_PER_S / (tokens - 1)


def _e2e(request: RequestRecord) -> Seconds | None:
    return (request.ended_ns - request.sent_ns) / NS_PER_S
