"""Checks of launches and arms: is it the server that was asked for, configured like the one it is compared with?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kit.analysis import FlagClass, FlagDifference
from kit.checks.evidence import Evidence, about_arm, about_launch
from kit.checks.results import Code, Doubt, Severity
from kit.diagnosis import Cause, diagnose
from kit.records import Launch, LaunchStatus, Origin
from kit.sglang import added_counts, draft_counts, effective_config, identity_problem, leftover_problem
from kit.spec import AdaptiveArm, BaselineArm

__all__ = ["adaptive_in_force", "adaptive_unstable", "launch_failed", "unfair_flags", "wrong_server"]

# A controller is unstable that moves often, soon, and mostly back.
MANY_CHANGES = 6
SHORT_DWELL_S = 1.0
MOST_UNDONE = 0.9
KV_CAPACITY = "max_total_num_tokens"
ADMISSION = ("max_running_requests", "effective_max_running_requests_per_dp")


def launch_failed(evidence: Evidence) -> Iterator[Doubt]:
    """A launch that did not end well may lack cells; what it finished stands, unless it is void."""
    for launch in evidence.facts.launches:
        if launch.status is not LaunchStatus.COMPLETED:
            void = launch.status is LaunchStatus.VOID
            yield about_launch(
                launch,
                Code.LAUNCH_VOID if void else Code.LAUNCH_FAILED,
                Severity.INVALID if void else Severity.DOUBT,
                f"launch {launch.launch} of {launch.arm} {launch.status.value}: {launch.failure or 'no reason kept'}",
                f"see the log: speckit show RUN --log {launch.launch}",
            )


def wrong_server(evidence: Evidence) -> Iterator[Doubt]:
    """The server must be the arm's own, by what it says about itself and by what its answers hold."""
    for launch in evidence.facts.launches:
        if launch.server_info is None:
            if launch.launch not in evidence.served:
                continue
            hint = "keep /server_info of every launch; without it nobody knows what answered"
            message = f"launch {launch.launch} left no /server_info"
            yield about_launch(launch, Code.SERVER_UNSEEN, Severity.UNKNOWN, message, hint)
            continue
        identity = identity_problem(launch.server_info, evidence.spec, evidence.arm(launch))
        for problem in (identity, _leftover(evidence.facts.header.origin, launch)):
            if problem is not None:
                hint = "stop the other server by its own process id, or choose another port"
                yield about_launch(launch, Code.WRONG_SERVER, Severity.INVALID, problem, hint)
    yield from _wrong_answers(evidence)


def _leftover(origin: Origin, launch: Launch) -> str | None:
    """Why the server must have been there before its launch, which is no fault in one that was attached."""
    if origin is Origin.ATTACHED:
        return None
    return leftover_problem(
        launch.server_info or {},
        command=launch.command,
        started_utc=launch.started_utc,
        startup_s=launch.startup_s if origin is Origin.MEASURED else None,
    )


def _wrong_answers(evidence: Evidence) -> Iterator[Doubt]:
    """Answers that count verify rounds on a baseline, or do not on an arm that speculates."""
    for launch in evidence.facts.launches:
        counts = [counts for cell, counts in evidence.cells() if cell.launch == launch.launch]
        drafting, continued = sum(c.drafting for c in counts), sum(c.continued for c in counts)
        baseline = isinstance(evidence.arm(launch), BaselineArm)
        if baseline and drafting:
            message = f"{drafting} answers of the baseline count verify rounds{_pace(evidence, launch)}"
        elif not baseline and continued and not drafting:
            message = f"no answer of {launch.arm} counts a verify round: the server does not speculate"
        else:
            continue
        hint = "compare the launch command with what the server says it was started with"
        yield about_launch(launch, Code.WRONG_SERVER, Severity.INVALID, message, hint)


def _pace(evidence: Evidence, launch: Launch) -> str:
    """Tokens a round that a server tells which should have none, and what follows."""
    cells = {cell.cell for cell in evidence.facts.cells if cell.launch == launch.launch}
    mine = {rep.repetition for rep in evidence.facts.repetitions if rep.cell in cells}
    answers = (one.meta_info or {} for one in evidence.facts.requests if one.repetition in mine)
    counts = added_counts(map(draft_counts, answers))
    pace = f", {counts.tokens_a_round:.2f} tokens each" if counts else ""
    return f"{pace}: the server speculates"


def unfair_flags(evidence: Evidence) -> Iterator[Doubt]:
    """A flag that nobody asked to differ voids the arm's comparison."""
    for difference in evidence.analysis.flag_differences:
        if difference.flag_class is FlagClass.UNFAIR:
            yield about_arm(
                difference.arm,
                Code.UNFAIR_FLAG,
                Severity.DOUBT if _judged_by_cell(difference, evidence) else Severity.INVALID,
                f"{difference.flag} is {difference.arm_value} on {difference.arm} and {difference.baseline_value} on "
                f"{difference.baseline}",
                f"state {difference.flag} for every arm, or declare the difference under the arm's `server`",
            )


def _judged_by_cell(difference: FlagDifference, evidence: Evidence) -> bool:
    """Whether the difference leaves cells alone that it does not reach: `queueing` voids those above a limit."""
    return difference.flag in ADMISSION or _pool_is_ample(difference, evidence)


def _pool_is_ample(difference: FlagDifference, evidence: Evidence) -> bool:
    """Whether the smaller KV pool holds every request at full length, so that its size cannot have mattered."""
    if difference.flag != KV_CAPACITY:
        return False
    sizes = (difference.arm_value, difference.baseline_value)
    needed = max(evidence.spec.load.concurrency) * evidence.spec.server.context_length
    return all(size.isdigit() and int(size) >= needed for size in sizes)


def adaptive_in_force(evidence: Evidence) -> Iterator[Doubt]:
    """SGLang drops adaptive mode silently when another flag does not go with it."""
    for launch in evidence.facts.launches:
        if not isinstance(evidence.arm(launch), AdaptiveArm) or launch.server_info is None:
            continue
        config = effective_config(launch.server_info)
        if not config.get("speculative_adaptive"):
            message = f"adaptive mode is off: the arm is {_fixed(config)}{_why_fixed(launch)}"
            hint = "nothing may be said of adaptive K; take the flag that switched it off out of the spec"
            yield about_launch(launch, Code.ADAPTIVE_NOT_IN_FORCE, Severity.INVALID, message, hint)
    for use in evidence.analysis.adaptive:
        if use.concurrency is None and use.switches == 0:
            message = f"the controller never left K={use.depths[0].depth} in {use.iterations} iterations"
            hint = "a longer run, or prompts of several classes, would give it something to adapt to"
            launch = evidence.launches[use.launch]
            yield about_launch(launch, Code.ADAPTIVE_NOT_IN_FORCE, Severity.DOUBT, message, hint)


def adaptive_unstable(evidence: Evidence) -> Iterator[Doubt]:
    """A controller that keeps going back and forth follows its own threshold, not the text."""
    for pace in evidence.analysis.depth_paces:
        settled = pace.dwell_s is None or pace.dwell_s >= SHORT_DWELL_S
        if settled or pace.changes < MANY_CHANGES or pace.undone < MOST_UNDONE * (pace.changes - 1):
            continue
        shares = ", ".join(f"K={time.depth} {time.share:.0%}" for time in pace.times)
        message = (
            f"K went back and forth: {pace.undone} of {pace.changes} changes undid the one before, one every "
            f"{pace.dwell_s:.2g} s by the {pace.source}; {shares} of the time"
        )
        hint = (
            "the words hold for an unstable controller with this ladder, which no mean K describes: raise its "
            "up_hysteresis or update_interval, or fix K"
        )
        launch = evidence.launches[pace.launch]
        yield about_launch(launch, Code.ADAPTIVE_UNSTABLE, Severity.DOUBT, message, hint)


def _fixed(config: Mapping[str, Any]) -> str:
    """What a server that was to adapt really runs."""
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    steps, topk, tokens = (config.get(name, "unknown") for name in names)
    return f"fixed at {steps} steps, top-k {topk}, {tokens} draft tokens"


def _why_fixed(launch: Launch) -> str:
    """The log's own reason, with a semicolon before it; empty where the log gives none."""
    found = diagnose(launch.log)
    return f"; {found.title}" if found.cause is Cause.ADAPTIVE_OFF else ""
