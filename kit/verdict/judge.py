"""Facts to verdict, on one screen: analysis, doubts, numbers from what is left, words by the rule of the spec."""

from __future__ import annotations

from kit.analysis import Study, account_costs, compare_speed, load_switches
from kit.checks import CellState, cell_states, check_run, evidence_of, unfit_cells
from kit.records import RunFacts
from kit.verdict.answer import Coverage, answer
from kit.verdict.caveats import headings, limits, not_measured
from kit.verdict.gate import gate_section
from kit.verdict.outputs import losslessness_section
from kit.verdict.ran import what_ran
from kit.verdict.results import VERDICT_VERSION, DoubtsSection, Verdict
from kit.verdict.service import service_section
from kit.verdict.speed import speed_section

__all__ = ["judge"]


def judge(facts: RunFacts) -> Verdict:
    """The verdict on a run, by the rules that its spec fixed; the same facts always give the same verdict."""
    study = Study.of(facts)
    analysis = study.analysis()
    evidence = evidence_of(facts, analysis)
    doubts = check_run(facts, analysis)
    states = cell_states(analysis.cells, doubts)
    valid = frozenset(state.cell for state in states if state.state is CellState.VALID)
    spec = evidence.spec
    speed = compare_speed(spec, analysis.cells, valid=valid)
    costs = account_costs(spec, analysis.cells, analysis.acceptance, valid=valid)
    service = study.service(unfit=unfit_cells(evidence, states, doubts))
    oracles = study.oracles(analysis.gates, costs)
    words = speed_section(facts, spec, cells=analysis.cells, speed=speed, states=states)
    outputs = losslessness_section(spec, analysis.losslessness)
    return Verdict(
        version=VERDICT_VERSION,
        title=spec.title,
        question=spec.question,
        answer=answer(words, outputs, Coverage.of(facts.header.origin, spec, states)),
        headings=headings(evidence),
        speed=words,
        gate=gate_section(analysis.gates),
        losslessness=outputs,
        saturation=speed.saturation,
        peaks=speed.peaks,
        costs=costs,
        acceptance=analysis.acceptance,
        adaptive=analysis.adaptive,
        oracles=oracles,
        switches=load_switches(spec, speed),
        heterogeneity=analysis.heterogeneity,
        depth_paces=analysis.depth_paces,
        doubts=DoubtsSection(
            cells=states,
            doubts=doubts,
            identities=tuple(one for one in analysis.identities if one.failures),
            reconciliation=analysis.reconciliation,
            traces=analysis.traces,
            flag_differences=analysis.flag_differences,
        ),
        what_ran=what_ran(facts, spec, analysis),
        limits=limits(spec, facts.header.origin),
        not_measured=not_measured(evidence, speed, outputs, oracles=oracles),
        service=service_section(spec, service),
    )
