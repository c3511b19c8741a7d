"""What the trace costs is read from pairs of passes, with an interval or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.analysis.index import Index
from kit.analysis.results import TraceCost
from kit.analysis.trace_cost import trace_costs
from kit.plan import TOGGLED
from kit.records import Outcome, Phase, Role, RunFacts
from kit.verdict import judge
from tests.builders import shared_run


def toggled(passes: list[tuple[Phase, float]]) -> RunFacts:
    """A run with one launch more, whose passes at concurrency 1 took so much longer than the one they repeat."""
    facts = shared_run()
    last = facts.launches[-1]
    launch = replace(last, launch=last.launch + 1, role=Role.TRACE_COST)
    model = next(cell for cell in facts.cells if cell.launch == last.launch)
    cell = replace(model, cell=model.cell + 1000, launch=launch.launch)
    timed = next(rep for rep in facts.repetitions if rep.cell == model.cell)
    requests = [one for one in facts.requests if one.repetition == timed.repetition]
    begin = min(one.sent_ns for one in requests)
    repetitions, repeated = [], []
    for at, (phase, factor) in enumerate(passes, start=1):
        number = 10_000 + at
        repetitions.append(replace(timed, repetition=number, cell=cell.cell, phase=phase))
        for one in requests:
            sent, ended = (begin + round((t - begin) * factor) for t in (one.sent_ns, one.ended_ns))
            repeated.append(replace(one, repetition=number, sent_ns=sent, ended_ns=ended))
    return replace(
        facts,
        launches=(*facts.launches, launch),
        cells=(*facts.cells, cell),
        repetitions=(*facts.repetitions, *repetitions),
        requests=(*facts.requests, *repeated),
    )


def cost_of(facts: RunFacts) -> TraceCost:
    (found,) = trace_costs(Index(facts))
    return found


@given(cost=st.floats(0.8, 1.25), drift=st.floats(-0.02, 0.02))
def test_a_constant_cost_is_found_whatever_drifts_beside_it(cost: float, drift: float) -> None:
    passes = [(phase, np.exp(drift * at) * (cost if phase is Phase.TRACED else 1)) for at, phase in enumerate(TOGGLED)]
    found = cost_of(toggled(passes))
    interval = found.ratio.interval
    assert found.ratio.point == pytest.approx(1 / cost, rel=1e-5)
    assert interval is not None and interval.lo - 1e-9 <= 1 / cost <= interval.hi + 1e-9
    assert found.ratio.n == 4


def test_two_pairs_give_a_ratio_and_the_reason_why_it_has_no_interval() -> None:
    found = cost_of(toggled([(phase, 1.0) for phase in TOGGLED[:4]]))
    assert (found.ratio.interval, found.ratio.n) == (None, 2)
    assert found.ratio.reason == "2 of the 3 pairs of passes that an interval needs"


def test_a_pass_in_which_nothing_succeeded_takes_its_pair_away() -> None:
    facts = toggled([(phase, 1.0) for phase in TOGGLED])
    failed = [replace(one, outcome=Outcome.RESET) if one.repetition == 10_001 else one for one in facts.requests]
    found = cost_of(replace(facts, requests=tuple(failed)))
    assert found.ratio.n == 3


def test_passes_of_the_cost_enter_no_other_number() -> None:
    facts = toggled([(phase, 3.0) for phase in TOGGLED])
    with_cost, without = judge(facts), judge(shared_run())
    assert with_cost.speed == without.speed
    assert with_cost.acceptance == without.acceptance
    assert "what the iteration trace costs" not in {item.what for item in with_cost.not_measured}
    assert "what the iteration trace costs" in {item.what for item in without.not_measured}
