"""Facts to analysis, on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kit.analysis.acceptance import acceptance
from kit.analysis.acceptance_results import Gates
from kit.analysis.accounting import Accounts, accounts
from kit.analysis.adaptive import adaptive_use, depth_paces
from kit.analysis.cells import cell_results
from kit.analysis.cost_results import Costs, Oracle
from kit.analysis.evidence import cell_evidence
from kit.analysis.flags import arm_server_infos, flag_differences
from kit.analysis.gates import gates
from kit.analysis.gpus import energies, gpu_conditions
from kit.analysis.heterogeneity import heterogeneity
from kit.analysis.index import Index, depth_of, topk_of
from kit.analysis.iterations import iteration_times
from kit.analysis.oracle import oracles
from kit.analysis.outputs import losslessness
from kit.analysis.results import Analysis, ArmSummary
from kit.analysis.service import ServiceLevel, service_levels
from kit.analysis.trace_cost import trace_costs
from kit.records import RunFacts
from kit.spec import BaselineArm

__all__ = ["Study", "analyse"]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The facts of one run, arranged once: for the analysis, and for what needs the doubts first."""

    index: Index
    accounts: Accounts

    @classmethod
    def of(cls, facts: RunFacts) -> Study:
        """Arrange the facts and hold their counts against each other."""
        index = Index(facts)
        return cls(index, accounts(index))

    def analysis(self) -> Analysis:
        """Everything that the facts say by themselves; `compare_speed` adds speed once the doubts are known."""
        return _analysis(self.index, self.accounts)

    def service(self, *, unfit: Mapping[int, str]) -> tuple[ServiceLevel, ...]:
        """Requests within limits and load by the clock, without the cells that are `unfit`."""
        return service_levels(self.index, unfit=unfit)

    def oracles(self, gates: Gates, costs: Costs) -> tuple[Oracle, Oracle]:
        """What choosing K could gain, as far as the gates allow."""
        return oracles(self.index, self.accounts, gates=gates, costs=costs)


def analyse(facts: RunFacts) -> Analysis:
    """The analysis of one run."""
    return Study.of(facts).analysis()


def _analysis(index: Index, books: Accounts) -> Analysis:
    return Analysis(
        arms=_arms(index),
        cells=cell_results(index),
        evidence=cell_evidence(index),
        acceptance=acceptance(index, books),
        adaptive=adaptive_use(index),
        depth_paces=depth_paces(index),
        heterogeneity=heterogeneity(index, books),
        gates=gates(index, books),
        losslessness=losslessness(index),
        reconciliation=books.reconciliation,
        traces=books.traces,
        identities=books.identities,
        iteration_times=iteration_times(index),
        flag_differences=flag_differences(index.spec, arm_server_infos(index.facts.launches)),
        trace_costs=trace_costs(index),
        gpus=gpu_conditions(index),
        energies=energies(index),
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
