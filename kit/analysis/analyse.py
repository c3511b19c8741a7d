"""Facts to analysis, on one screen."""

from __future__ import annotations

from collections import Counter

from kit.analysis.acceptance import acceptance
from kit.analysis.accounting import accounts
from kit.analysis.adaptive import adaptive_use, depth_paces
from kit.analysis.cells import cell_results
from kit.analysis.evidence import cell_evidence
from kit.analysis.flags import arm_server_infos, flag_differences
from kit.analysis.gates import gates
from kit.analysis.index import Index, depth_of, topk_of
from kit.analysis.iterations import iteration_times
from kit.analysis.outputs import losslessness
from kit.analysis.results import Analysis, ArmSummary
from kit.analysis.trace_cost import trace_costs
from kit.records import RunFacts
from kit.spec import BaselineArm

__all__ = ["analyse"]


def analyse(facts: RunFacts) -> Analysis:
    """Everything that the facts say by themselves; `compare_speed` adds speed once the doubts are known."""
    index = Index(facts)
    books = accounts(index)
    return Analysis(
        arms=_arms(index),
        cells=cell_results(index),
        evidence=cell_evidence(index),
        acceptance=acceptance(index, books),
        adaptive=adaptive_use(index),
        depth_paces=depth_paces(index),
        gates=gates(index, books),
        losslessness=losslessness(index),
        reconciliation=books.reconciliation,
        traces=books.traces,
        identities=books.identities,
        iteration_times=iteration_times(index),
        flag_differences=flag_differences(index.spec, arm_server_infos(facts.launches)),
        trace_costs=trace_costs(index),
    )


def _arms(index: Index) -> tuple[ArmSummary, ...]:
    launches = Counter(launch.arm for launch in index.facts.launches)
    return tuple(
        ArmSummary(
            name=arm.name,
            kind=arm.kind,
            depth=None if isinstance(arm, BaselineArm) else depth_of(arm),
            topk=None if isinstance(arm, BaselineArm) else topk_of(arm),
            baseline=reference.name if (reference := index.spec.reference(arm)) else None,
            launches=launches[arm.name],
        )
        for arm in index.spec.arms
    )
