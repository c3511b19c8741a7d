"""Checks of single cells: did the requests succeed, did the client keep up, was it the load that was asked for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kit.analysis import CellResult, depth_of
from kit.checks.evidence import Evidence, about_cell
from kit.checks.results import Code, Doubt, Severity
from kit.records import Outcome, Phase, Repetition
from kit.units import NS_PER_S

__all__ = [
    "cached_tokens",
    "client_limited",
    "dead_draft",
    "disturbed",
    "eager_decode",
    "failed_requests",
    "few_waves",
    "identity_failed",
    "late_standin",
    "nan_logits",
    "queueing",
    "retraction",
    "steady_window",
]

MIN_WAVES = 4
MAX_CLIENT_CPU = 0.85
NOTABLE_LAG_S = 0.05
MAX_CLOCK_STEP_S = 0.001
CLIENT_HINT = "give the load generator a core of its own"
MAX_EAGER_SHARE = 0.01
MAX_LATE_SHARE = 0.01
# Below this an acceptance length prints as 1.00.
DEAD_ACCEPTED = 0.005


def failed_requests(evidence: Evidence) -> Iterator[Doubt]:
    """Failures above the spec's limit void a cell; fewer are shown."""
    limit = evidence.spec.load.failure_limit
    for cell, _ in evidence.cells():
        if cell.failed:
            share = cell.failed / cell.requests
            kinds = ", ".join(f"{c.count} {c.outcome.value}" for c in cell.outcomes if c.outcome is not Outcome.OK)
            reason, hint = _told(evidence, cell)
            yield about_cell(
                cell,
                Code.FAILED_REQUESTS,
                Severity.INVALID if share > limit else Severity.DOUBT,
                f"{cell.failed} of {cell.requests} requests failed ({kinds}); the limit is {limit:.1%}{reason}",
                hint,
            )


def _told(evidence: Evidence, cell: CellResult) -> tuple[str, str]:
    """What the server's log says of the cell's failures, after a semicolon, and the next step."""
    timed = (one for one in evidence.failed if one.cell == cell.cell and one.phase is Phase.TIMED)
    told = [one.why for one in timed if one.why is not None]
    if not told:
        return "", "read the launch's log at the time of the failures; a failed request is never retried"
    (first, count), *others = Counter(why.title for why in told).most_common()
    shown = next(why for why in told if why.title == first)
    more = f", and {sum(n for _, n in others)} for other reasons" if others else ""
    return f"; {count} of them: {first} (server log, line {shown.line}){more}", shown.advice


def nan_logits(evidence: Evidence) -> Iterator[Doubt]:
    """NaN logits make every number of the cell meaningless."""
    for cell, _ in evidence.cells():
        count = sum(c.count for c in cell.outcomes if c.outcome is Outcome.NAN)
        if count:
            yield about_cell(
                cell,
                Code.NAN,
                Severity.INVALID,
                f"{count} requests ended because the logits were NaN",
                "check dtype and quantisation; float16 overflows with some drafts where bfloat16 does not",
            )


def cached_tokens(evidence: Evidence) -> Iterator[Doubt]:
    """A prefix from the cache makes prefill cheaper for whoever comes second."""
    for cell, counts in evidence.cells():
        if counts.cached_tokens is None:
            message, severity = "the server did not report cached tokens", Severity.UNKNOWN
        elif counts.cached_tokens:
            message, severity = f"{counts.cached_tokens} prompt tokens came from the prefix cache", Severity.INVALID
        else:
            continue
        hint = "start every arm with --disable-radix-cache and flush the cache between repetitions"
        yield about_cell(cell, Code.CACHED_TOKENS, severity, message, hint)


def retraction(evidence: Evidence) -> Iterator[Doubt]:
    """A retracted request is computed twice and breaks the accounting of tokens."""
    for cell, counts in evidence.cells():
        if counts.retractions is None:
            message, severity = "the server did not report retractions", Severity.UNKNOWN
        elif counts.retractions:
            message, severity = f"requests were retracted {counts.retractions} times", Severity.INVALID
        else:
            continue
        hint = "the KV pool was full: raise mem_fraction_static, or lower the concurrency or the output length"
        yield about_cell(cell, Code.RETRACTION, severity, message, hint)


def queueing(evidence: Evidence) -> Iterator[Doubt]:
    """Above the server's own limit requests wait in line, and the concurrency is not the one on the label."""
    limits = {
        launch.launch: config.get("effective_max_running_requests_per_dp") or config.get("max_running_requests")
        for launch, config in evidence.configs()
    }
    for cell, _ in evidence.cells():
        limit = limits.get(cell.launch)
        if limit is None:
            yield about_cell(
                cell,
                Code.QUEUEING_UNKNOWN,
                Severity.UNKNOWN,
                "the server's limit of running requests is not known",
                "keep /server_info of every launch",
            )
        elif cell.concurrency > limit:
            yield about_cell(
                cell,
                Code.QUEUEING,
                Severity.INVALID,
                f"the server runs at most {limit} requests, so concurrency {cell.concurrency} queued",
                "raise server.max_running_requests to the largest concurrency on every arm",
            )


def eager_decode(evidence: Evidence) -> Iterator[Doubt]:
    """Decoding without CUDA graphs where they were asked for is another server."""
    if evidence.spec.server.disable_cuda_graph:
        return
    for cell, counts in evidence.cells():
        share = counts.eager_iterations / max(counts.iterations, 1)
        if share > MAX_EAGER_SHARE:
            yield about_cell(
                cell,
                Code.EAGER_DECODE,
                Severity.INVALID,
                f"{counts.eager_iterations} of {counts.iterations} iterations ran without a CUDA graph",
                "put every measured batch size into server.cuda_graph_batch_sizes, or disable graphs on every arm",
            )


def dead_draft(evidence: Evidence) -> Iterator[Doubt]:
    """An acceptance length of 1.00 means that the draft never helped: wrong draft, wrong layers, wrong vocabulary."""
    for cell, counts in evidence.cells():
        depth = depth_of(evidence.spec.arm(cell.arm))
        if depth and counts.verify_rounds and counts.accepted_drafts < DEAD_ACCEPTED * counts.verify_rounds:
            yield about_cell(
                cell,
                Code.DEAD_DRAFT,
                Severity.INVALID,
                f"acceptance length is 1.00: {counts.accepted_drafts} drafts accepted in {counts.verify_rounds} rounds",
                "check that the draft was trained for this very target, and its revision",
            )


def steady_window(evidence: Evidence) -> Iterator[Doubt]:
    """Only tokens received while the load stood at its level count towards a word."""
    for cell, _ in evidence.cells():
        if cell.throughput_window.point is not None:
            continue
        if cell.throughput_full_run.point is None and not cell.e2e_latency_s.n and cell.failed < cell.requests:
            code, severity = Code.NO_CLIENT_TIMES, Severity.UNKNOWN
            hint = "record send and end times of every request"
        elif not cell.ttft_s.n and cell.failed < cell.requests:
            code, severity = Code.NO_CHUNK_TIMES, Severity.UNKNOWN
            hint = "stream the answers and record when each chunk arrives"
        else:
            code, severity = Code.NO_STEADY_WINDOW, Severity.INVALID
            hint = "raise load.waves, so that every slot serves several requests"
        yield about_cell(cell, code, severity, f"no steady window: {cell.throughput_window.reason}", hint)


def few_waves(evidence: Evidence) -> Iterator[Doubt]:
    """Ramps weigh more the fewer waves there are; four decide."""
    for cell, _ in evidence.cells():
        if cell.waves < MIN_WAVES:
            yield about_cell(
                cell,
                Code.FEW_WAVES,
                Severity.DOUBT,
                f"{cell.requests} requests are {cell.waves:.1f} waves, fewer than {MIN_WAVES}",
                "set load.waves to 4 or more",
            )


def identity_failed(evidence: Evidence) -> Iterator[Doubt]:
    """Counts of client, server and trace that do not agree describe different runs."""
    cells = {cell.cell: cell for cell in evidence.analysis.cells}
    for identities in evidence.analysis.identities:
        for failure in identities.failures:
            yield about_cell(
                cells[identities.cell],
                Code.IDENTITY_FAILED,
                Severity.INVALID,
                f"{failure.identity}: {failure.count} of {identities.checked} requests do not add up "
                f"(for instance {failure.example})",
                "client, server and trace must count the same requests, tokens and rounds; see docs/method.md",
            )


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
    return _lagged(lag, duration, noise_threshold) or (standin is not None and _fell_behind(standin))


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
