"""All checks together, and the state of each cell that follows: any invalid wins, then unknown, then valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kit.analysis import Analysis, CellResult, spec_of
from kit.checks import cell, client, content, drift, gpu, inputs, run, server, trace
from kit.checks.evidence import Evidence, about_run
from kit.checks.results import CellJudgement, CellState, Code, Doubt, Severity
from kit.records import RunFacts

__all__ = ["CHECKS", "Check", "cell_states", "check_run", "evidence_of", "run_checks"]

Check = Callable[[Evidence], Iterator[Doubt]]

CHECKS: tuple[Check, ...] = (
    run.declared,
    run.few_blocks,
    run.one_launch,
    run.attached,
    run.not_pre_registered,
    run.hash_mismatch,
    server.launch_failed,
    server.wrong_server,
    server.unfair_flags,
    inputs.inputs_differ,
    server.adaptive_in_force,
    server.adaptive_unstable,
    client.late_standin,
    trace.trace_missing,
    trace.trace_loss,
    trace.trace_untrusted,
    trace.trace_unreviewed,
    cell.failed_requests,
    cell.empty_texts,
    cell.nan_logits,
    cell.identity_failed,
    cell.cached_tokens,
    cell.retraction,
    cell.queueing,
    cell.eager_decode,
    cell.dead_draft,
    cell.steady_window,
    cell.few_waves,
    client.client_limited,
    gpu.gpu_slowed,
    gpu.gpu_shared,
    gpu.gpu_clock_differs,
    drift.drift,
    content.looping_outputs,
    content.short_outputs,
)

# What malformed facts (a server's own JSON, above all) can make a check run into. Anything else is a defect of the kit.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_ORDER = (Severity.INVALID, Severity.UNKNOWN, Severity.DOUBT)


def evidence_of(facts: RunFacts, analysis: Analysis) -> Evidence:
    """What the checks look at."""
    return Evidence(facts, spec_of(facts), analysis)


def check_run(facts: RunFacts, analysis: Analysis) -> tuple[Doubt, ...]:
    """Every doubt about a run, worst first; a check that cannot be carried out is itself a reason for doubt."""
    return run_checks(CHECKS, evidence_of(facts, analysis))


def run_checks(checks: Sequence[Check], evidence: Evidence) -> tuple[Doubt, ...]:
    """The doubts of `checks`, worst first and otherwise in order."""
    doubts = [doubt for one in checks for doubt in _carried_out(one, evidence)]
    return tuple(sorted(doubts, key=lambda doubt: _ORDER.index(doubt.severity)))


def _carried_out(check: Check, evidence: Evidence) -> tuple[Doubt, ...]:
    try:
        return tuple(check(evidence))
    except _MALFORMED as error:
        message = f"the check `{check.__name__}` could not be carried out: {type(error).__name__}: {error}"
        hint = "the facts are malformed; nothing may be concluded from a check that did not run"
        return (about_run(Code.CHECK_CRASHED, Severity.UNKNOWN, message, hint),)


def cell_states(cells: Sequence[CellResult], doubts: Sequence[Doubt]) -> tuple[CellJudgement, ...]:
    """The state of every cell, from the doubts about it, its launch, its arm and the run."""
    return tuple(_judgement(one, doubts) for one in cells)


def _judgement(one: CellResult, doubts: Sequence[Doubt]) -> CellJudgement:
    mine = [doubt for doubt in doubts if _concerns(doubt, one) and doubt.severity is not Severity.DOUBT]
    causes = tuple(dict.fromkeys(doubt.code for doubt in mine))
    if any(doubt.severity is Severity.INVALID for doubt in mine):
        state = CellState.INVALID
    else:
        state = CellState.UNKNOWN if mine else CellState.VALID
    return CellJudgement(one.cell, one.launch, one.arm, one.concurrency, state, causes)


def _concerns(doubt: Doubt, one: CellResult) -> bool:
    """Whether the doubt points at the cell, or at something that it is part of."""
    pointed = ((doubt.cell, one.cell), (doubt.launch, one.launch), (doubt.arm, one.arm))
    return all(reference is None or reference == own for reference, own in pointed)
