"""The sentence of the gate is the row of the reporting table, with what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import Gates, analyse
from kit.stats import Disclosure, GateSentence, GateWord, read_gates
from kit.verdict.gate import gate_failed, gate_section
from tests.builders import build_run, build_spec, eagle3, shared_run

PASS, FAIL, OPEN = GateWord.PASS, GateWord.FAIL, GateWord.INCONCLUSIVE


def gates(v1: GateWord, v2: GateWord, *, functional: bool = True, needed: int | None = None) -> Gates:
    found = analyse(shared_run()).gates
    return replace(
        found,
        v1=replace(found.v1, word=v1),
        v2=replace(found.v2, word=v2),
        reading=read_gates(v1, v2=v2, functional_within=functional),
        prompts_needed=needed,
    )


@pytest.mark.parametrize(
    ("v1", "v2", "words", "failed"),
    [
        (PASS, PASS, "does not move with K, and at equal positions the drafts are the same", False),
        (PASS, OPEN, "is not shown", False),
        (PASS, FAIL, "Two effects cancel", True),
        (FAIL, PASS, "K changes which positions are round starts", True),
        (FAIL, FAIL, "The draft itself depends on K", True),
        (FAIL, OPEN, "why is not established", True),
        (OPEN, PASS, "not enough data", False),
        (OPEN, OPEN, "not enough data", False),
    ],
)
def test_each_pair_of_words_has_its_sentence(v1: GateWord, v2: GateWord, words: str, failed: bool) -> None:
    found = gates(v1, v2)
    assert words in gate_section(found).sentence
    assert gate_failed(found) is failed


def test_every_sentence_of_the_table_has_words() -> None:
    readings = {read_gates(a, v2=b, functional_within=True).sentence for a in GateWord for b in GateWord}
    assert readings == set(GateSentence)


def test_an_open_gate_says_how_many_prompts_it_needs() -> None:
    sentence = gate_section(gates(OPEN, OPEN, needed=149)).sentence
    assert "prompts" in sentence
    assert "exactly concordant on 24 prompts; 149 are needed" in sentence


def test_a_functional_error_withholds_the_curve() -> None:
    found = gates(PASS, PASS, functional=False)
    assert found.reading.curve_oracle is Disclosure.WITHHELD
    assert "No curve gap is reported" in gate_section(found).sentence


def test_a_gate_that_was_not_run_says_why() -> None:
    one = analyse(build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, eagle3(3)]))).gates
    assert gate_section(one).sentence == (
        "The gate was not run: fewer than two depths were captured at one concurrency."
    )
    assert not gate_failed(one)
