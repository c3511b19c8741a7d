"""The server's own average of accepted tokens: cumulative, of one rank, wiped by a flush. It is never the run's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.analysis import analyse
from kit.checks import CellState, Code, cell_states, check_run
from kit.records import Launch, Outcome, Phase, RunFacts
from kit.sglang import added_counts, draft_counts
from tests.builders import eagle3, edit_launches, shared_run
from tests.field.inputs import answered_run, objects, record_of, rows

ANSWERS = [row["meta_info"] for row in rows("F17", "responses.jsonl")]
BEFORE, AFTER = objects("F17", "before.json"), objects("F17", "after.json")
ARMS = [{"kind": "baseline", "name": "baseline"}, eagle3(3)]

# What other servers leave behind: one rank and another run's average, nothing at all, a fresh server's zero.
LEFT_BEHIND = {
    "before": BEFORE["internal_states"],
    "after": AFTER["internal_states"],
    "one rank of another run": [{"avg_spec_accept_length": 3.9}],
    "no state": [],
    "zero": [{"avg_spec_accept_length": 0.0}],
}


def reporting(states: list[dict[str, Any]]) -> RunFacts:
    """A sound run on eight ranks whose speculating servers report these averages, and its baseline none."""

    def report(launch: Launch) -> Launch:
        plain = [{name: value for name, value in state.items() if "accept" not in name} for state in states]
        kept = states if launch.arm == "eagle3_k3" else plain
        return replace(launch, server_info={**(launch.server_info or {}), "dp_size": 8, "internal_states": kept})

    return edit_launches(shared_run(), report)


def test_the_length_of_the_run_comes_from_its_own_answers() -> None:
    total = added_counts(map(draft_counts, ANSWERS))
    assert total is not None
    assert (total.completion_tokens, total.verify_rounds) == (692, 244)
    assert total.tokens_a_round == pytest.approx(2.836, abs=5e-4)


def test_no_average_of_the_server_is_that_length() -> None:
    averages = [state["avg_spec_accept_length"] for state in BEFORE["internal_states"]]
    known = [average for average in averages if average is not None]
    assert averages[0] is None
    assert 692 / 244 not in [pytest.approx(value, abs=0.05) for value in (*known, sum(known) / len(known))]


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_whatever_average_a_server_reports_changes_nothing(name: str) -> None:
    facts, sound = reporting(LEFT_BEHIND[name]), analyse(shared_run())
    analysis = analyse(facts)
    assert analysis.acceptance == sound.acceptance
    doubts = check_run(facts, analysis)
    assert {state.state for state in cell_states(analysis.cells, doubts)} == {CellState.VALID}
    assert [doubt.code for doubt in doubts] == []


def test_warmup_traffic_is_in_no_figure() -> None:
    facts = shared_run()
    warm = [replace(rep, repetition=rep.repetition + 1000, phase=Phase.WARMUP) for rep in facts.repetitions]
    eager = [replace(one, repetition=one.repetition + 1000, histogram=(0, 0, 0, 9)) for one in facts.requests]
    mixed = replace(facts, repetitions=(*warm, *facts.repetitions), requests=(*eager, *facts.requests))
    assert analyse(mixed).acceptance == analyse(facts).acceptance


def test_an_answer_from_prefill_alone_is_left_out() -> None:
    prefill = {"completion_tokens": 1, "spec_verify_ct": 0}
    assert added_counts(map(draft_counts, [*ANSWERS, prefill])) == added_counts(map(draft_counts, ANSWERS))


def test_without_any_counts_the_length_is_unknown_and_nothing_is_judged() -> None:
    bare = [{"completion_tokens": meta["completion_tokens"]} for meta in ANSWERS]
    assert added_counts(map(draft_counts, bare)) is None
    assert {record_of(meta).outcome for meta in bare} == {Outcome.MALFORMED}
    facts = answered_run({"eagle3_k3": bare}, ARMS)
    analysis = analyse(facts)
    (chain,) = analysis.acceptance
    assert (chain.acceptance_length.point, chain.rounds) == (None, 0)
    assert chain.acceptance_length.reason
    assert analysis.gates.v1.cells == ()
    states = cell_states(analysis.cells, check_run(facts, analysis))
    (causes,) = (state.causes for state in states if state.arm == "eagle3_k3")
    assert Code.FAILED_REQUESTS in causes
