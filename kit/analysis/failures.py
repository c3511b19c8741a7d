"""Failed answers, each with what the server's own log says about it.

A living server answers an exception with an empty 500 or with a 200 whose body breaks off, and tells the reason
in its log alone. The log has no request ids there, so answers and tracebacks of one pass are paired by order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit import contract
from kit.analysis.index import spec_of
from kit.diagnosis import Diagnosis, diagnose_requests
from kit.records import Outcome, Phase, Repetition, RequestRecord, RunFacts

__all__ = ["FailedAnswer", "failed_answers"]

_FIRST_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """A request that did not end well; `why` is None where the log does not tell or the server was not to blame."""

    launch: int
    cell: int
    phase: Phase
    request: RequestRecord
    why: Diagnosis | None


def failed_answers(facts: RunFacts) -> tuple[FailedAnswer, ...]:
    """Every failed request of every pass, warm-up included, in the order in which they ended."""
    launch_of = {cell.cell: cell.launch for cell in facts.cells}
    failed: dict[int, list[RequestRecord]] = {}
    for request in sorted(facts.requests, key=lambda one: one.ended_ns):
        if request.outcome is not Outcome.OK:
            failed.setdefault(request.repetition, []).append(request)
    logs = {launch.launch: launch.log for launch in facts.launches}
    keys = _sampling_keys(facts)
    return tuple(
        FailedAnswer(launch_of[one.cell], one.cell, one.phase, request, why)
        for one in facts.repetitions
        if one.repetition in failed
        for request, why in _joined(failed[one.repetition], _told(one, logs[launch_of[one.cell]], keys))
    )


def _sampling_keys(facts: RunFacts) -> frozenset[str]:
    version = spec_of(facts).engine.sglang
    return contract.load(version).sampling_keys if version in contract.versions() else frozenset()


def _told(repetition: Repetition, log: str, keys: frozenset[str]) -> tuple[Diagnosis, ...]:
    """Failures logged during the pass; none where nobody noted how long the log was."""
    span = repetition.client.get("log_lines")
    return diagnose_requests(log, after=span[0], upto=span[1], sampling_keys=keys) if span else ()


def _joined(failed: Sequence[RequestRecord], told: Sequence[Diagnosis]) -> list[tuple[RequestRecord, Diagnosis | None]]:
    """One traceback for each answer that only a traceback explains; none where their numbers and words differ."""
    blamed = [request for request in failed if _in_the_server(request)]
    alike = len({one.title for one in told}) == 1
    if len(blamed) != len(told) and not alike:
        return [(request, None) for request in failed]
    reasons = dict(zip((request.rid for request in blamed), told, strict=False))
    fallback = told[0] if alike else None
    return [(one, reasons.get(one.rid, fallback) if _in_the_server(one) else None) for one in failed]


def _in_the_server(request: RequestRecord) -> bool:
    broke = request.outcome in {Outcome.CUT, Outcome.RESET}
    return broke or (request.status is not None and request.status >= _FIRST_SERVER_ERROR)
