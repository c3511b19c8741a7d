"""Checks of the load generator and its host: did the client measure the server, or itself?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kit.analysis import CellResult
from kit.checks.evidence import Evidence, about_cell
from kit.checks.results import Code, Doubt, Severity
from kit.records import Repetition
from kit.units import NS_PER_S

__all__ = ["client_limited", "disturbed", "late_standin"]

MAX_CLIENT_CPU = 0.85
NOTABLE_LAG_S = 0.05
MAX_CLOCK_STEP_S = 0.001
CLIENT_HINT = "give the load generator a core of its own"
MAX_LATE_SHARE = 0.01


def client_limited(evidence: Evidence) -> Iterator[Doubt]:
    """A load generator that is busy, or wakes late, measures itself."""
    for cell, timed in evidence.passes():
        health = timed.client
        cpu, lag = health.get("cpu_share"), health.get("loop_lag_s")
        if cpu is None or lag is None:
            yield about_cell(
                cell,
                Code.CLIENT_UNKNOWN,
                Severity.UNKNOWN,
                "the load generator left no record of its own health",
                "measure with the kit's own generator",
            )
            continue
        duration = (timed.ended_ns - timed.started_ns) / NS_PER_S
        yield from _busy(cell, cpu)
        yield from _limited(cell, health, evidence.spec.decision.noise_threshold)
        yield from _late(cell, lag, duration, evidence.spec.decision.noise_threshold)


def _busy(cell: CellResult, cpu: float) -> Iterator[Doubt]:
    if cpu > MAX_CLIENT_CPU:
        message = f"the load generator used {cpu:.0%} of a core; it may have been the limit"
        yield about_cell(cell, Code.CLIENT_LIMITED, Severity.INVALID, message, CLIENT_HINT)


def _limited(cell: CellResult, health: Mapping[str, Any], threshold: float) -> Iterator[Doubt]:
    """What else the generator can have done to the numbers; a pass from before it was recorded has none of these."""
    idle, step, headroom = (health.get(key) for key in ("idle_share", "clock_step_s", "fd_headroom"))
    if idle is not None and idle > threshold:
        message = f"requests went out late by {idle:.1%} of the time they took, more than the threshold {threshold:.0%}"
        yield about_cell(cell, Code.CLIENT_LIMITED, Severity.INVALID, message, CLIENT_HINT)
    if step is not None and step > MAX_CLOCK_STEP_S:
        message = f"the wall clock was set by {step:.3f} s during the pass, and arrivals are stamped by it"
        hint = "stop whatever sets the clock (slewing does no harm) and measure again"
        yield about_cell(cell, Code.CLIENT_LIMITED, Severity.INVALID, message, hint)
    if headroom is not None and headroom <= 0:
        message = f"the load generator had no file descriptor left ({health.get('connections')} connections)"
        yield about_cell(cell, Code.CLIENT_LIMITED, Severity.INVALID, message, "raise the limit: ulimit -n")
    if health.get("stamps") == "event loop":
        late = health.get("loop_lag_p99_s") or 0.0
        message = f"arrivals were stamped by the event loop, late by up to {late * 1000:.1f} ms (p99 of its lag)"
        hint = "measure over plain HTTP on Linux, where the kernel stamps arrivals"
        yield about_cell(cell, Code.CLIENT_LIMITED, Severity.DOUBT, message, hint)


def _late(cell: CellResult, lag: float, duration: float, threshold: float) -> Iterator[Doubt]:
    if lag > NOTABLE_LAG_S:
        severity = Severity.INVALID if _lagged(lag, duration, threshold) else Severity.DOUBT
        message = f"the load generator once woke {lag:.3f} s late in {duration:.1f} s"
        yield about_cell(cell, Code.CLIENT_LIMITED, severity, message, CLIENT_HINT)


def _lagged(lag: float, duration: float, threshold: float) -> bool:
    """A late wake-up moves an edge of the window by as much, so its share of the pass is the error it can make."""
    return lag > NOTABLE_LAG_S and lag > threshold * duration


def _fell_behind(standin: Mapping[str, int]) -> bool:
    """Whether the simulated world fell behind the clock. One late iteration may be chance."""
    return standin["late"] > max(MAX_LATE_SHARE * standin["iterations"], 1)


def disturbed(timed: Repetition, *, noise_threshold: float) -> bool:
    """Whether the host, not the server, spoilt this pass. It depends on no result, so the pass may be made again."""
    duration = (timed.ended_ns - timed.started_ns) / NS_PER_S
    lag, standin = timed.client.get("loop_lag_s") or 0.0, timed.client.get("standin")
    idle = timed.client.get("idle_share") or 0.0
    behind = standin is not None and _fell_behind(standin)
    return behind or idle > noise_threshold or _lagged(lag, duration, noise_threshold)


def late_standin(evidence: Evidence) -> Iterator[Doubt]:
    """A simulated iteration that ends late was slowed down by this host, not by the world."""
    for cell, timed in evidence.passes():
        standin = timed.client.get("standin")
        if standin is not None and _fell_behind(standin):
            yield about_cell(
                cell,
                Code.LATE_STANDIN,
                Severity.INVALID,
                f"{standin['late']} of {standin['iterations']} simulated iterations ended late; "
                f"{MAX_LATE_SHARE:.0%} is the limit",
                "leave the host alone while a simulated run measures, or choose a slower world",
            )
