"""Whether a host can measure a spec: what blocks, what would disturb, and what to do about it."""

from collections.abc import Iterator

from kit.doctor.allreduce import allreduce_finding
from kit.doctor.engine import engine_findings
from kit.doctor.gate import require_host
from kit.doctor.gpu import gpu_findings
from kit.doctor.host import host_findings
from kit.doctor.results import Finding, State
from kit.spec import Spec

__all__ = ["Finding", "State", "examine", "require_host"]


def examine(spec: Spec | None) -> Iterator[Finding]:
    """One finding after the other: the engine, the GPUs, the host. Nothing is changed."""
    yield from engine_findings(spec)
    yield from gpu_findings(spec)
    together = allreduce_finding(spec)
    if together is not None:
        yield together
    yield from host_findings(spec)
