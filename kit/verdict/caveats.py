"""What stands beside the answer: the flags of the first line, the limits, and what was not measured and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kit.analysis import Analysis, Oracle, Speed
from kit.checks import Evidence, registered_in_time
from kit.records import LaunchStatus, Origin
from kit.spec import KIT_MODEL, AdaptiveArm, Eagle3Arm, Spec
from kit.stats import Estimate
from kit.verdict.content import content_of
from kit.verdict.gate import gate_failed
from kit.verdict.results import Heading, LosslessnessSection, NotMeasured

__all__ = ["headings", "limits", "not_measured"]

MIN_BLOCKS = 3
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MIXES = {
    "phases": (
        "Kinds of prompt came one after the other in every cell, so a kind was measured in its own phase alone.",
    ),
    "homogeneous": (
        "Every block sent one kind of prompt, so intervals over blocks hold the difference between kinds.",
    ),
}
_ORIGINS = {
    Origin.SIMULATED: Heading.SIMULATED,
    Origin.IMPORTED: Heading.IMPORTED,
    Origin.ATTACHED: Heading.ATTACHED,
}


def headings(evidence: Evidence) -> tuple[Heading, ...]:
    """The flags that hold, in the order in which they are printed."""
    origin = evidence.facts.header.origin
    holds = {
        **{heading: origin is one for one, heading in _ORIGINS.items()},
        Heading.ON_CPU: origin is not Origin.SIMULATED and _on_cpu(evidence),
        Heading.PARTIAL: _partial(evidence),
        Heading.NOT_PINNED: origin is not Origin.SIMULATED and not _pinned(evidence.spec),
        Heading.NOT_PRE_REGISTERED: not registered_in_time(evidence),
        Heading.SYNTHETIC_CONTENT: bool(content_of(evidence.facts).synthetic),
        Heading.GATE_FAILED: gate_failed(evidence.analysis.gates),
    }
    return tuple(heading for heading in Heading if holds[heading])


def _on_cpu(evidence: Evidence) -> bool:
    """Whether a server said that it computes on the CPU."""
    return any(config.get("device") == "cpu" for _, config in evidence.configs())


def _partial(evidence: Evidence) -> bool:
    """Whether less was measured than the spec asks for, or too little to carry an interval."""
    spec, facts = evidence.spec, evidence.facts
    measured = {(cell.arm, cell.concurrency) for cell in evidence.analysis.cells}
    planned = {(arm.name, level) for arm in spec.arms for level in spec.load.concurrency}
    blocks = min(evidence.measured_blocks(arm.name) for arm in spec.arms)
    return (
        blocks < max(spec.design.blocks, MIN_BLOCKS)
        or not planned <= measured
        or any(launch.status is not LaunchStatus.COMPLETED for launch in facts.launches)
        or any(declaration.startswith("PARTIAL") for declaration in facts.header.declarations)
    )


def _pinned(spec: Spec) -> bool:
    """Whether target and draft are fixed: to a commit (a branch name is none), or by the hashes that the kit has."""
    models = [model for model in (spec.models.target, spec.models.draft) if model is not None]
    return all(model.path.startswith(KIT_MODEL) or _COMMIT.fullmatch(model.revision or "") for model in models)


def limits(spec: Spec, origin: Origin) -> tuple[str, ...]:
    """What the numbers do not say, whatever they are."""
    return tuple(_limits(spec, origin))


def _limits(spec: Spec, origin: Origin) -> Iterator[str]:
    yield "The answer holds for this host, this model pair, this load and these flags; nothing was varied but the arm."
    yield f"Throughput is that of a closed loop with {spec.load.waves} waves a level; open arrivals behave differently."
    if origin is Origin.SIMULATED:
        yield "A simulated world shows that the procedure works; it says nothing about any GPU."
    if origin is Origin.IMPORTED:
        yield "An imported capture was not made under these rules; its speeds are shown and not judged."
    if origin is Origin.ATTACHED:
        yield "Attached servers were not started by the kit; what they share the host with is not known."
    yield from _MIXES.get(spec.workload.mix, ())
    if spec.workload.ignore_eos:
        yield "A bias: ignore_eos sent texts past their own end, where they repeat and drafts are accepted more easily."
    else:
        yield "Drafts after the end of an answer count in its last round, which the histogram does not tell apart."
    if any(isinstance(arm, AdaptiveArm) for arm in spec.arms):
        yield "Under an adaptive K acceptance at depth is only bounded: what a shallow round never proposed is unknown."
    if any(isinstance(arm, Eagle3Arm) and arm.topk > 1 for arm in spec.arms):
        yield "For a tree, S_k is the share of rounds that reached depth k; it cannot be held against a chain's."


def not_measured(
    evidence: Evidence, speed: Speed, outputs: LosslessnessSection, *, oracles: Sequence[Oracle]
) -> tuple[NotMeasured, ...]:
    """What a reader may look for in vain, each with its reason."""
    return tuple(
        (
            *_of_cells(evidence.analysis),
            *_of_arms(evidence),
            *_of_speed(evidence.spec, speed),
            *_of_gates(evidence.analysis),
            *_of_oracles(oracles),
            *_of_trace(evidence),
            *_of_outputs(outputs),
        )
    )


def _of_arms(evidence: Evidence) -> Iterator[NotMeasured]:
    """Arms without a single cell; the first failure of a launch is the reason."""
    for arm in evidence.asked_for:
        if not any(cell.arm == arm.name for cell in evidence.analysis.cells):
            failures = [launch.failure for launch in evidence.facts.launches if launch.arm == arm.name]
            reason = next(filter(None, failures), "none of its launches gave a cell")
            yield NotMeasured(f"arm {arm.name}", reason)


def _of_cells(analysis: Analysis) -> Iterator[NotMeasured]:
    """Quantities that no cell has."""
    cells = analysis.cells
    if not cells:
        yield NotMeasured("anything", "no repetition was finished")
        return
    for what, estimates in (
        ("throughput in the steady window", [cell.throughput_window for cell in cells]),
        ("throughput over the full run", [cell.throughput_full_run for cell in cells]),
    ):
        if all(estimate.point is None for estimate in estimates):
            yield NotMeasured(what, _first_reason(estimates))
    for what, distributions in (
        ("time to first token", [cell.ttft_s for cell in cells]),
        ("time per output token", [cell.tpot_s for cell in cells]),
        ("end-to-end latency", [cell.e2e_latency_s for cell in cells]),
    ):
        if all(distribution.n == 0 for distribution in distributions):
            yield NotMeasured(what, distributions[0].reason or "nothing was timed")


def _of_speed(spec: Spec, speed: Speed) -> Iterator[NotMeasured]:
    yield from _grouped("crossover", [(one.arm, one.concurrency) for one in speed.crossovers])
    yield from _grouped("saturation", [(one.arm, one.saturation.x_max) for one in speed.saturation])
    yield from _grouped("ratio at saturation", [(one.arm, one.peaks.ratio) for one in speed.peaks])
    if not speed.aa_speed:
        reason = "the control launches gave no cell" if spec.design.aa_speed else "design.aa_speed is off"
        yield NotMeasured("noise floor of speed (aa_speed)", reason)
    if not speed.closing:
        reason = "the closing launch gave no cell" if spec.design.closing_baseline else "design.closing_baseline is off"
        yield NotMeasured("drift over the run", reason)


def _grouped(what: str, arms: Sequence[tuple[str, Estimate]]) -> Iterator[NotMeasured]:
    """Missing estimates of several arms, those with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for arm, estimate in arms:
        if estimate.point is None:
            by_reason.setdefault(estimate.reason or "", []).append(arm)
    for reason, names in by_reason.items():
        yield NotMeasured(f"{what} of {', '.join(names)}", reason)


def _of_gates(analysis: Analysis) -> Iterator[NotMeasured]:
    gates = analysis.gates
    if not gates.v1.cells:
        yield NotMeasured("gate v1", gates.v1.reason or "")
    if not gates.v2.cells:
        yield NotMeasured("gate v2", gates.v2.reason or "")


def _of_oracles(oracles: Sequence[Oracle]) -> Iterator[NotMeasured]:
    for oracle in oracles:
        if oracle.reason:
            yield NotMeasured(f"{oracle.kind.value} oracle of the best draft length", oracle.reason)


def _of_trace(evidence: Evidence) -> Iterator[NotMeasured]:
    if not any(cost.ratio.interval for cost in evidence.analysis.trace_costs):
        asked = evidence.spec.design.trace_cost is not None
        reason = "its launch gave too few passes" if asked else "design.trace_cost names no arm"
        yield NotMeasured("what the iteration trace costs", reason)


def _of_outputs(outputs: LosslessnessSection) -> Iterator[NotMeasured]:
    if any(row.unresolved for row in outputs.rows):
        open_rows = [row for row in outputs.rows if row.unresolved]
        reason = "nobody recorded the two best log-probabilities where outputs part"
        if any(row.hard > row.violations for row in open_rows):
            reason = "the baseline's server was not asked again by prefill where a difference looks too large for a tie"
        yield NotMeasured("ties told from violations", reason)
    if outputs.rows and not outputs.aa_tokens:
        yield NotMeasured("the baseline's divergence from itself (aa_tokens)", "it ran at one concurrency only")


def _first_reason(estimates: Sequence[Estimate]) -> str:
    return next((estimate.reason for estimate in estimates if estimate.reason), "")
