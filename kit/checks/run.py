"""Checks of the run as a whole: how much was repeated, and was it fixed before the first number?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from kit.checks.evidence import Evidence, about_arm, about_run
from kit.checks.results import Code, Doubt, Severity
from kit.records import Origin
from kit.spec import RULES_VERSION, prereg_hash, registered_part

__all__ = [
    "MIN_BLOCKS",
    "attached",
    "declared",
    "few_blocks",
    "hash_mismatch",
    "not_pre_registered",
    "one_launch",
    "registered_in_time",
]

MIN_BLOCKS = 3


def one_launch(evidence: Evidence) -> Iterator[Doubt]:
    """Launches of one arm differ by more than arms often do, and one launch does not show by how much."""
    for arm in evidence.asked_for:
        blocks = evidence.measured_blocks(arm.name)
        if blocks == 1:
            message = f"{arm.name} was launched once, so nothing is known about how launches differ"
            asked = arm.name in evidence.spec.design.once
            hint = "take it out of design.once" if asked else f"set design.blocks to {MIN_BLOCKS} or more"
            yield about_arm(arm.name, Code.ONE_LAUNCH, Severity.DOUBT, message, hint)
        elif blocks == 0:
            message, hint = f"{arm.name} was never measured", "read why its launches failed"
            yield about_arm(arm.name, Code.LAUNCH_FAILED, Severity.DOUBT, message, hint)


def few_blocks(evidence: Evidence) -> Iterator[Doubt]:
    """Three blocks are the least that carry an interval."""
    repeated = (arm.name for arm in evidence.asked_for if arm.name not in evidence.spec.design.once)
    measured = min(map(evidence.measured_blocks, repeated), default=0)
    planned = evidence.spec.design.blocks
    if measured < MIN_BLOCKS:
        message = f"{measured} blocks hold every arm; {MIN_BLOCKS} are the least that carry an interval"
        hint = f"set design.blocks to {MIN_BLOCKS} or more" if planned < MIN_BLOCKS else "measure the missing launches"
        yield about_run(Code.FEW_BLOCKS, Severity.DOUBT, message, hint)


def declared(evidence: Evidence) -> Iterator[Doubt]:
    """What the run declared about itself before its first number."""
    for declaration in evidence.facts.header.declarations:
        yield about_run(Code.DECLARED, Severity.DOUBT, declaration, "declared before the first number")


def attached(evidence: Evidence) -> Iterator[Doubt]:
    """Nobody knows how a server was started that the kit did not start, nor what it shares its host with."""
    if evidence.facts.header.origin is Origin.ATTACHED:
        message = "the servers were started by someone else, so what they ran on and with is not known"
        hint = "let the kit start them: engine.runtime docker or local"
        yield about_run(Code.PROVENANCE_UNKNOWN, Severity.UNKNOWN, message, hint)


def not_pre_registered(evidence: Evidence) -> Iterator[Doubt]:
    """Nothing proves that the rules came first, unless the spec lay in a clean commit before the first request."""
    if not registered_in_time(evidence):
        header = evidence.facts.header
        found = f"committed {header.spec_committed_utc}" if header.spec_commit else "in no clean commit"
        message = f"the spec was {found}; the run began {header.created_utc}"
        hint = "commit the spec before running it"
        yield about_run(Code.NOT_PRE_REGISTERED, Severity.DOUBT, message, hint)


def registered_in_time(evidence: Evidence) -> bool:
    """Whether the spec lay in a clean git commit that is older than the run."""
    header = evidence.facts.header
    if header.spec_commit is None or header.spec_committed_utc is None:
        return False
    return _moment(header.spec_committed_utc) < _moment(header.created_utc)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def hash_mismatch(evidence: Evidence) -> Iterator[Doubt]:
    """The stored hash must be that of the stored spec, and the rules those it was registered with."""
    header = evidence.facts.header
    if header.rules_version != RULES_VERSION:
        message = f"registered under rules {header.rules_version}, judged by rules {RULES_VERSION}"
        yield about_run(Code.HASH_MISMATCH, Severity.DOUBT, message, f"judge it with kit {header.kit_version}")
    else:
        stored = json.loads(header.spec_json)
        found = prereg_hash(registered_part(stored, workload_hash=header.workload_hash))
        if found != header.spec_hash:
            message = f"the stored spec hashes to {found[:12]}, not to the registered {header.spec_hash[:12]}"
            hint = "the run file was edited; measure again"
            yield about_run(Code.HASH_MISMATCH, Severity.INVALID, message, hint)
