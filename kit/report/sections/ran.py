"""What ran: models, engine, host and every server start, enough to repeat the run or to refuse a comparison."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kit.analysis import ArmSummary, IterationTime, TraceCost
from kit.format import MILLISECONDS, MISSING, SECONDS, count
from kit.metrics import metric
from kit.records import LaunchStatus, Resumption, Role
from kit.report.entries import column, defined, points
from kit.report.escape import code, fence, prose, text
from kit.report.table import Entry, table
from kit.sglang import TracePlugin
from kit.verdict import LaunchRow, Named, TracedBy, WhatRan

__all__ = ["CommandView", "RanView", "ran_view"]

_NO_START_TIME = "nobody recorded when this server was ready"

_PURPOSE = {
    Role.MEASURE: "measured",
    Role.AA_SPEED: "control: the baseline again",
    Role.CLOSING: "control: end of the run",
    Role.TRACE_COST: "with and without the trace",
}


@dataclass(frozen=True, slots=True)
class CommandView:
    """The command that started one arm."""

    arm: str
    block: str


@dataclass(frozen=True, slots=True)
class RanView:
    """Strings of the section."""

    origin: str
    identity_table: str
    model_table: str
    engine_table: str
    host_table: str
    arm_table: str
    launch_table: str
    commands: tuple[CommandView, ...]
    iteration_table: str
    trace_table: str
    cost_table: str
    cost: str
    declarations: tuple[str, ...]
    resumptions: tuple[str, ...]


def ran_view(ran: WhatRan, *, levels: Collection[int]) -> RanView:
    """The section's strings. Iteration times are shown for batches as large as one of the `levels` of concurrency."""
    times = [time for time in ran.iteration_times if time.batch_size in levels]
    return RanView(
        origin=ran.origin.value,
        identity_table=_identity_table(ran),
        model_table=_named_table(ran.models) if ran.models else "",
        engine_table=_named_table(ran.engine) if ran.engine else "",
        host_table=_named_table(ran.host) if ran.host else "",
        arm_table=_arm_table(ran.arms) if ran.arms else "",
        launch_table=_launch_table(ran.launches) if ran.launches else "",
        commands=_commands(ran.launches),
        iteration_table=_iteration_table(times) if times else "",
        trace_table=_trace_table(ran.trace) if ran.trace else "",
        cost_table=_cost_table(ran.trace_costs) if ran.trace_costs else "",
        cost=defined("trace_cost"),
        declarations=tuple(map(prose, ran.declarations)),
        resumptions=tuple(map(_resumption, ran.resumptions)),
    )


def _resumption(seam: Resumption) -> str:
    return f"{text(seam.started_utc)}, before launch {seam.first_launch}, with speckit {text(seam.kit_version)}"


def _identity_table(ran: WhatRan) -> str:
    rows = [
        ("Run", code(ran.run_id)),
        ("Facts", text(ran.origin.value)),
        ("Created", text(ran.created_utc)),
        ("Spec", code(ran.spec_name)),
        ("Spec, SHA-256 of its registered part", code(ran.spec_hash)),
        ("Workload, SHA-256", code(ran.workload_hash)),
        ("Rules", f"version {ran.rules_version}"),
        ("Measured with", f"speckit {text(ran.kit_version)}"),
    ]
    return table(("What", "Value"), rows, align="ll")


def _named_table(facts: Sequence[Named]) -> str:
    return table(("What", "Value"), [(text(fact.name), code(fact.value)) for fact in facts], align="ll")


def _arm_table(arms: Sequence[ArmSummary]) -> str:
    rows = [
        (
            code(arm.name),
            text(arm.kind),
            MISSING if arm.depth is None else str(arm.depth),
            MISSING if arm.topk is None else str(arm.topk),
            MISSING if arm.baseline is None else code(arm.baseline),
            str(arm.launches),
        )
        for arm in arms
    ]
    header = ("Arm", "Kind", "Draft length K", "Branches", "Compared with", "Launches")
    return table(header, rows, align="llrrlr")


def _launch_table(launches: Sequence[LaunchRow]) -> str:
    startups = points([launch.startup_s for launch in launches], unit=SECONDS)
    rows = [
        (
            str(launch.launch),
            str(launch.block),
            code(launch.arm),
            _PURPOSE[launch.role],
            text(launch.started_utc),
            Entry(startup, _NO_START_TIME if launch.startup_s is None else None),
            _ending(launch),
        )
        for launch, startup in zip(launches, startups, strict=True)
    ]
    header = ("Launch", "Block", "Arm", "Purpose", "Started (UTC)", "Ready after, s", "Ended")
    return table(header, rows, align="rrlllrl")


def _ending(launch: LaunchRow) -> Entry:
    failed = launch.status is not LaunchStatus.COMPLETED
    return Entry(launch.status.value, (launch.failure or "no cause recorded") if failed else None)


def _commands(launches: Sequence[LaunchRow]) -> tuple[CommandView, ...]:
    """The first command of each arm; later launches differ in ports and paths only."""
    first: dict[str, LaunchRow] = {}
    for launch in launches:
        if launch.command:
            first.setdefault(launch.arm, launch)
    return tuple(CommandView(code(arm), fence([shlex.join(launch.command)])) for arm, launch in first.items())


def _iteration_table(times: Sequence[IterationTime]) -> str:
    medians = points([time.median_s for time in times], unit=MILLISECONDS)
    rows = [
        (
            code(time.arm),
            "none" if time.depth is None else str(time.depth),
            str(time.batch_size),
            count(time.n),
            median,
        )
        for time, median in zip(times, medians, strict=True)
    ]
    return table(("Arm", "K in force", "Batch", "Iterations", "Median, ms"), rows, align="lrrrr")


def _trace_table(traced: Sequence[TracedBy]) -> str:
    rows = []
    for one in traced:
        plugin, launches = one.plugin, ", ".join(map(str, one.launches))
        if plugin is None:
            rows.append((launches, "none named", MISSING, MISSING))
        else:
            sha = MISSING if plugin.sha is None else code(plugin.sha[:12])
            rows.append((launches, text(plugin.version), sha, _reviewed(plugin)))
    return table(("Launches", "Plugin", "SHA-256", "SGLang's hooked sources"), rows, align="llll")


def _reviewed(plugin: TracePlugin) -> str:
    if plugin.override:
        return "**not reviewed**, let pass by SPECKIT_TRACE_ALLOW_UNKNOWN"
    return MISSING if plugin.reviewed_as is None else f"reviewed, those of {text(plugin.reviewed_as)}"


def _cost_table(costs: Sequence[TraceCost]) -> str:
    known = metric("trace_cost")
    ratios = column([cost.ratio for cost in costs], unit=known.display)
    rows = [
        (code(cost.arm), str(cost.launch), str(cost.concurrency), str(cost.ratio.n), ratio)
        for cost, ratio in zip(costs, ratios, strict=True)
    ]
    return table(("Arm", "Launch", "Requests at once", "Pairs of passes", known.label), rows, align="lrrrr")
