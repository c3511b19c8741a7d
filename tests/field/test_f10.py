"""Three generations of count names: one set of numbers, broken telemetry named, and what is absent stays absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.analysis import analyse
from kit.checks import Code, check_run
from kit.sglang import DraftCounts, added_counts, broken_counts, draft_counts
from tests.builders import eagle3
from tests.field.inputs import answered_run, record_of, rows

ANSWERS: dict[str, dict[str, Any]] = {row["id"]: row["meta_info"] for row in rows("F10", "responses.jsonl")}
DEPTHS = {name: 5 if name == "r1" else 3 for name in ANSWERS}
SOUND = ("r1", "r2", "r3", "r8", "r9")
BASELINE = {"kind": "baseline", "name": "baseline"}

EXPECTED = {
    "r1": (40, 66, 200, 0.330, 2.650),
    **{name: (50, 83, 150, 0.553, 2.660) for name in ("r2", "r3", "r6", "r7", "r8")},
    "r9": (50, 83, 150, 0.553, 2.620),
}

# A tree of 8 draft tokens, 4 steps deep, in the oldest names: 7 nodes are proposed in each round.
TREE = {
    "completion_tokens": 61,
    "spec_verify_ct": 20,
    "spec_accept_token_num": 40,
    "spec_draft_token_num": 140,
    "spec_accept_rate": 0.2857,
    "spec_accept_length": 3.05,
    "spec_accept_histogram": [2, 3, 9, 5, 1],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_generation_gives_the_same_counts(name: str) -> None:
    counts = draft_counts(ANSWERS[name])
    assert counts is not None
    rounds, correct, proposed, rate, length = EXPECTED[name]
    assert (counts.verify_rounds, counts.correct_drafts, counts.proposed_drafts) == (rounds, correct, proposed)
    assert counts.acceptance_rate == pytest.approx(rate, abs=5e-4)
    assert counts.tokens_a_round == pytest.approx(length, abs=5e-4)


@pytest.mark.parametrize("name", ["r4", "r5"])
def test_an_answer_without_a_round_counts_nothing_and_not_zero(name: str) -> None:
    assert draft_counts(ANSWERS[name]) is None
    assert list(broken_counts(ANSWERS[name], drafts_a_round=3)) == []


def test_totals_are_those_of_the_sound_answers_each_counted_once() -> None:
    total = added_counts(draft_counts(ANSWERS[name]) for name in (*SOUND, "r4", "r5"))
    assert total == DraftCounts(106 + 3 * 133 + 131, 240, 66 + 4 * 83, 800, (56, 53, 53, 74, 3, 1))


def run(answers: Mapping[str, dict[str, Any]]) -> Any:
    """The field's answers as one run: the first at K = 5, the plain one from a baseline, the others at K = 3."""
    arms = {"baseline": ["r4"], "eagle3_k5": ["r1"], "eagle3_k3": [name for name in DEPTHS if name not in ("r1", "r4")]}
    given_by = {arm: [answers[name] for name in names] for arm, names in arms.items()}
    return answered_run(given_by, [BASELINE, eagle3(5), eagle3(3)])


def test_broken_telemetry_is_named_and_its_histograms_are_not_used() -> None:
    facts = run(ANSWERS)
    analysis = analyse(facts)
    chain = next(one for one in analysis.acceptance if one.arm == "eagle3_k3")
    assert (chain.requests, chain.rounds, chain.dropped) == (4, 200, 2)
    assert chain.dropped_reasons == (
        "histogram and verify rounds disagree: 1",
        "histogram and accepted drafts disagree: 1",
    )
    assert chain.acceptance_length.point == pytest.approx(1 + 83 / 50)
    broken = {(failure.identity, failure.count) for one in analysis.identities for failure in one.failures}
    assert broken == {("verify rounds", 1), ("accepted drafts", 1), ("overshoot", 1)}
    told = [doubt for doubt in check_run(facts, analysis) if doubt.code is Code.IDENTITY_FAILED]
    assert {doubt.arm for doubt in told} == {"eagle3_k3"}


def test_tokens_trimmed_at_the_stop_fail_no_identity() -> None:
    sound = {name: ANSWERS["r9"] if name in ("r6", "r7") else meta for name, meta in ANSWERS.items()}
    assert [one.failures for one in analyse(run(sound)).identities] == [(), (), ()]


def test_a_tree_proposes_all_of_its_nodes_but_the_root() -> None:
    assert list(broken_counts(TREE, drafts_a_round=7)) == []
    arm = {"kind": "eagle3", "name": "tree", "num_steps": 4, "topk": 4, "num_draft_tokens": 8}
    facts = answered_run({"tree": [TREE]}, [BASELINE, arm])
    assert all(one.failures == () for one in analyse(facts).identities)


@pytest.mark.parametrize(
    ("change", "identity"),
    [
        ({"spec_accepted_drafts": 84}, "names of one count"),
        ({"spec_accept_histogram": [10, 12, 11, 17]}, "names of one count"),
        ({"spec_num_proposed_drafts": 200, "spec_proposed_drafts": 200, "spec_accept_rate": 0.415}, "proposed drafts"),
        ({"spec_accept_rate": 0.58}, "acceptance rate"),
        ({"spec_accept_length": 1.66}, "tokens a round"),
    ],
)
def test_counts_that_contradict_each_other_are_named_and_left_out(change: dict[str, Any], identity: str) -> None:
    meta = ANSWERS["r8"] | change
    assert list(broken_counts(meta, drafts_a_round=3)) == [identity]
    analysis = analyse(answered_run({"eagle3_k3": [meta, ANSWERS["r2"]]}, [BASELINE, eagle3(3)]))
    (chain,) = analysis.acceptance
    assert (chain.requests, chain.dropped) == (1, 1)
    assert [failure.identity for one in analysis.identities for failure in one.failures] == [identity]


def test_an_adaptive_depth_owes_no_fixed_number_of_proposals() -> None:
    meta = ANSWERS["r8"] | {"spec_num_proposed_drafts": 350, "spec_proposed_drafts": 350, "spec_accept_rate": 83 / 350}
    assert list(broken_counts(meta, drafts_a_round=None)) == []


def test_a_histogram_longer_than_the_draft_is_refused() -> None:
    meta = ANSWERS["r2"] | {"spec_accept_histogram": [17, 10, 12, 7, 4], "spec_accepted_drafts": 71}
    meta |= {"spec_accept_rate": 71 / 150}
    (identities,) = (one for one in analyse(run(ANSWERS | {"r2": meta})).identities if one.arm == "eagle3_k3")
    assert "overshoot" in {failure.identity for failure in identities.failures}


def test_a_sum_that_lacks_a_part_is_unknown() -> None:
    total = added_counts([draft_counts(ANSWERS["r2"]), draft_counts({"completion_tokens": 5, "spec_verify_ct": 2})])
    assert total == DraftCounts(138, 52, None, None, None)
    assert added_counts([None]) is None


@given(st.lists(st.integers(0, 40), min_size=2, max_size=8).filter(any))
def test_whatever_a_server_counts_consistently_is_accepted_under_any_names(histogram: list[int]) -> None:
    rounds, correct = sum(histogram), sum(j * n for j, n in enumerate(histogram))
    proposed = rounds * (len(histogram) - 1)
    for names in (
        ("spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"),
        ("spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
        ("spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
    ):
        meta: dict[str, Any] = {"completion_tokens": rounds + correct + 1, "spec_verify_ct": rounds}
        meta[names[0]], meta[names[1]], meta[names[2]] = correct, proposed, histogram
        assert draft_counts(meta) == DraftCounts(rounds + correct + 1, rounds, correct, proposed, tuple(histogram))
        assert list(broken_counts(meta, drafts_a_round=len(histogram) - 1)) == []
        assert record_of(meta).histogram == tuple(histogram)
