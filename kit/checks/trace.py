"""Checks of the iteration trace: is it there, whole, and the same story as the responses?"""

from __future__ import annotations

from collections.abc import Iterator

from kit.checks.evidence import Evidence, about_launch, about_run
from kit.checks.results import Code, Doubt, Severity
from kit.records import LaunchStatus
from kit.sglang import TRACE_BLOCK, trace_plugin

__all__ = ["trace_loss", "trace_missing", "trace_unreviewed", "trace_untrusted"]

# Above this share the rest is no sample of the workload any more (method 1.4).
MAX_UNTRUSTED_SHARE = 0.05
HINT = "attach the trace to every arm; its header in the server's log says why it is missing"


def trace_missing(evidence: Evidence) -> Iterator[Doubt]:
    """Every arm is traced; a launch without a trace cannot show what ran."""
    for health in evidence.analysis.traces:
        launch = evidence.launches[health.launch]
        if health.iterations == 0 and launch.launch in evidence.served and launch.status is not LaunchStatus.VOID:
            message = f"launch {launch.launch} has no trace"
            yield about_launch(launch, Code.TRACE_MISSING, Severity.UNKNOWN, message, HINT)


def trace_loss(evidence: Evidence) -> Iterator[Doubt]:
    """Ids without a gap, clocks that never run back, no record dropped by the writer."""
    hint = "look for a full disk or a killed server; repeat the launch"
    for health in evidence.analysis.traces:
        launch = evidence.launches[health.launch]
        if health.gaps:
            message = f"{health.gaps} iteration ids are missing or repeated in the trace of launch {launch.launch}"
            yield about_launch(launch, Code.TRACE_LOSS, Severity.INVALID, message, hint)
        if health.reversals:
            message = f"the clock of the trace ran back {health.reversals} times in launch {launch.launch}"
            yield about_launch(launch, Code.TRACE_LOSS, Severity.INVALID, message, hint)
    known = sum(health.gaps for health in evidence.analysis.traces)
    if evidence.facts.trace.lost > known:
        message = f"{evidence.facts.trace.lost} records of the trace were lost, {known} of them accounted for"
        yield about_run(Code.TRACE_LOSS, Severity.INVALID, message, hint)
    for launch, config in evidence.configs():
        dropped = (config.get(TRACE_BLOCK) or {}).get("dropped", 0)
        if dropped:
            message = f"the trace writer dropped {dropped} records"
            yield about_launch(launch, Code.TRACE_LOSS, Severity.INVALID, message, hint)


def trace_untrusted(evidence: Evidence) -> Iterator[Doubt]:
    """Requests whose rounds do not reproduce their histogram are left out; too many of them void the launch."""
    for books in evidence.analysis.reconciliation:
        launch = evidence.launches[books.launch]
        untrusted = books.requests - books.exact
        traced = any(health.iterations for health in evidence.analysis.traces if health.launch == books.launch)
        if untrusted and traced:
            reasons = "; ".join(f"{reason.reason} ({reason.count})" for reason in books.reasons)
            yield about_launch(
                launch,
                Code.TRACE_UNTRUSTED,
                Severity.INVALID if untrusted > MAX_UNTRUSTED_SHARE * books.requests else Severity.DOUBT,
                f"the trace does not reproduce {untrusted} of {books.requests} responses: {reasons}",
                "the requests are left out of everything that needs the trace; above 5 % the launch is void",
            )


def trace_unreviewed(evidence: Evidence) -> Iterator[Doubt]:
    """Hooked sources that nobody read may have moved what a record means."""
    for launch in evidence.facts.launches:
        plugin = trace_plugin(launch.server_info) if launch.server_info is not None else None
        if plugin is not None and plugin.override:
            message = "the trace hooks source text of SGLang that was not reviewed, let pass by the override"
            hint = "use a reviewed version of SGLang, or review this one (docs/sglang.md 11)"
            yield about_launch(launch, Code.TRACE_UNREVIEWED, Severity.DOUBT, message, hint)
