"""The section on service: the spec's limits in words beside the levels."""

from __future__ import annotations

from collections.abc import Sequence

from kit.analysis import ServiceLevel
from kit.spec import Limits, Spec
from kit.verdict.results import ServiceSection

__all__ = ["service_section"]


def service_section(spec: Spec, levels: Sequence[ServiceLevel]) -> ServiceSection:
    """Limits in words and levels as they are."""
    return ServiceSection(_words(spec.load.limits) if spec.load.limits else "", tuple(levels))


def _words(limits: Limits) -> str:
    stated = (
        ("time to first token at most", limits.ttft_s),
        ("time per output token at most", limits.tpot_s),
        ("end to end at most", limits.e2e_s),
    )
    return ", ".join(f"{what} {limit:g} s" for what, limit in stated if limit is not None)
