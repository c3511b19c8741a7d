"""Cells that may not stand for service: of closed loops those with a doubt, of rates those that these rules refuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

from kit.analysis.service import fell_behind
from kit.checks.cell import admission_limits
from kit.checks.client import MAX_CLIENT_CPU
from kit.checks.evidence import Evidence
from kit.checks.results import CellJudgement, CellState, Doubt, Scope, Severity
from kit.records import Outcome, Phase, Repetition, RequestRecord

__all__ = ["unfit_cells"]


def unfit_cells(evidence: Evidence, states: Sequence[CellJudgement], doubts: Sequence[Doubt]) -> dict[int, str]:
    """Cell to reason. A doubt about a launch, its arm or the run holds for its rates too."""
    launch_of = {cell.cell: cell.launch for cell in evidence.facts.cells}
    limits = admission_limits(evidence)
    unfit = {state.cell: "cell not valid" for state in states if state.state is not CellState.VALID}
    requests: dict[int, list[RequestRecord]] = defaultdict(list)
    for request in evidence.facts.requests:
        requests[request.repetition].append(request)
    for one in evidence.facts.repetitions:
        if one.phase is Phase.OFFERED:
            launch, mine = launch_of[one.cell], requests[one.repetition]
            reason = (
                _condemned(evidence, launch, doubts)
                or _reason(evidence, one, mine)
                or _not_as_offered(mine, limits.get(launch))
            )
            if reason:
                unfit[one.cell] = reason
    return unfit


def _condemned(evidence: Evidence, launch: int, doubts: Sequence[Doubt]) -> str | None:
    """The doubt that also keeps the closed loops of this launch from counting."""
    arm = evidence.launches[launch].arm
    for one in doubts:
        about = one.scope is not Scope.CELL and one.arm in (None, arm) and one.launch in (None, launch)
        if about and one.severity is not Severity.DOUBT:
            return f"launch not valid ({one.code.value})"
    return None


def _not_as_offered(requests: Sequence[RequestRecord], limit: int | None) -> str | None:
    """Retractions, and a line in front of the server's own limit, where it otherwise kept up.

    A saturated level has neither latencies nor goodput, and its line and retractions are what saturation means.
    """
    if not requests or fell_behind(requests):
        return None
    retractions = [request.retractions for request in requests if request.outcome is Outcome.OK]
    if None in retractions:
        return "the server did not report retractions"
    if any(retractions):
        return (
            f"{sum(bool(one) for one in retractions)} of {len(requests)} requests were retracted: the KV pool was full"
        )
    if limit is None:
        return "the server's limit of running requests is not known, so nobody knows whether requests queued"
    most = _most_in_flight(requests)
    return f"up to {most} requests in flight, and the server runs at most {limit}" if most > limit else None


def _most_in_flight(requests: Sequence[RequestRecord]) -> int:
    """Most requests at any one time; one that ends as another begins is gone."""
    moves = sorted([(one.sent_ns, 1) for one in requests] + [(one.ended_ns, -1) for one in requests])
    return max(accumulate(step for _, step in moves), default=0)


def _reason(evidence: Evidence, one: Repetition, requests: Sequence[RequestRecord]) -> str | None:
    """A pass that sends by the clock: few failures, and a client that kept the clock."""
    failed = sum(request.outcome is not Outcome.OK for request in requests)
    limit, threshold = evidence.spec.load.failure_limit, evidence.spec.decision.noise_threshold
    if failed > limit * len(requests):
        return f"{failed} of {len(requests)} requests failed, more than {limit:.0%}"
    if one.client.get("cpu_share", 0.0) > MAX_CLIENT_CPU or one.client.get("idle_share", 0.0) > threshold:
        return "the load generator was at its limit"
    return None
