"""Cells that may not stand for service: of closed loops those with a doubt, of rates those that these rules refuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kit.checks.client import MAX_CLIENT_CPU
from kit.checks.evidence import Evidence
from kit.checks.results import CellJudgement, CellState
from kit.records import Outcome, Phase, Repetition, RequestRecord

__all__ = ["unfit_cells"]


def unfit_cells(evidence: Evidence, states: Sequence[CellJudgement]) -> dict[int, str]:
    """Cell to reason."""
    unfit = {state.cell: "cell not valid" for state in states if state.state is not CellState.VALID}
    requests: dict[int, list[RequestRecord]] = defaultdict(list)
    for request in evidence.facts.requests:
        requests[request.repetition].append(request)
    for one in evidence.facts.repetitions:
        if one.phase is Phase.OFFERED and (reason := _reason(evidence, one, requests[one.repetition])):
            unfit[one.cell] = reason
    return unfit


def _reason(evidence: Evidence, one: Repetition, requests: Sequence[RequestRecord]) -> str | None:
    """A pass that sends by the clock: few failures, and a client that kept the clock."""
    failed = sum(request.outcome is not Outcome.OK for request in requests)
    limit, threshold = evidence.spec.load.failure_limit, evidence.spec.decision.noise_threshold
    if failed > limit * len(requests):
        return f"{failed} of {len(requests)} requests failed, more than {limit:.0%}"
    if one.client.get("cpu_share", 0.0) > MAX_CLIENT_CPU or one.client.get("idle_share", 0.0) > threshold:
        return "the load generator was at its limit"
    return None
