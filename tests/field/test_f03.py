"""An acceptance length of 1.00 for ever is a dead draft, whichever floor the printed rate has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import CellState, Code, cell_states, check_run
from kit.diagnosis import Cause, diagnose
from kit.records import RunFacts
from kit.stats import SweepWord
from kit.verdict import judge
from tests.builders import build_run, edit_launches
from tests.field.inputs import objects, text

NEW, OLD = text("F03", "server_new_style.log"), text("F03", "server_old_style.log")


def dead_run(**config: object) -> RunFacts:
    """A run in which nothing that eagle3_k3 drafted was accepted, with what its server says of itself."""
    facts = build_run(acceptance=-1.0)
    return edit_launches(
        facts, lambda one: replace(one, server_info={**(one.server_info or {}), **config}), arm="eagle3_k3"
    )


@pytest.mark.parametrize(
    ("log", "batches"),
    [
        (NEW, 12),
        (OLD, 6),
        # Two other depths' floors, and a rank in the prefix.
        (OLD.replace("accept rate: 0.25", "accept rate: 0.12").replace("] Decode", " TP0] Decode"), 6),
        (NEW.replace("Decode batch, ", "Decode batch [7], "), 12),
    ],
)
def test_the_log_of_a_dead_draft_is_named_by_the_length_not_by_the_rate(log: str, batches: int) -> None:
    found = diagnose(log)
    assert found.cause is Cause.DEAD_DRAFT
    assert f"{batches} of {batches} batches" in found.title
    assert "EAGLE3 draft under --speculative-algorithm EAGLE" in found.advice


@pytest.mark.parametrize(
    "log",
    [
        NEW.replace("accept len: 1.00", "accept len: 1.01", 1),
        "\n".join(NEW.splitlines()[:3]),
        "[2026-01-05 10:00:00] AdaptiveSpeculativeParams initialized: steps=1, candidate_steps=[0, 1]\n" + NEW,
    ],
    ids=["one batch had an accepted draft", "too few batches", "a controller that may draft nothing"],
)
def test_a_log_that_does_not_prove_it_is_not_called_dead(log: str) -> None:
    assert diagnose(log).cause is Cause.NONE


def test_the_arm_is_invalid_and_no_word_is_said_of_speculation() -> None:
    facts = dead_run()
    analysis = analyse(facts)
    doubts = check_run(facts, analysis)
    dead = [doubt for doubt in doubts if doubt.code is Code.DEAD_DRAFT]
    assert {doubt.arm for doubt in dead} == {"eagle3_k1", "eagle3_k3"}
    assert all("nothing of the method or the GPU" in doubt.message for doubt in dead)
    states = {(one.arm, one.state) for one in cell_states(analysis.cells, doubts)}
    assert ("eagle3_k3", CellState.INVALID) in states
    assert ("eagle3_k3", CellState.VALID) not in states
    verdict = judge(facts)
    assert {arm.word for arm in verdict.speed.arms} == {SweepWord.INCONCLUSIVE}


def test_an_eagle3_draft_under_eagle_is_the_first_suspect() -> None:
    facts = dead_run(**objects("F03", "server_info.json"))
    doubts = check_run(facts, analyse(facts))
    found = [one.hint for one in doubts if one.code is Code.DEAD_DRAFT and one.arm == "eagle3_k3"]
    assert found
    assert all("set it to EAGLE3" in hint for hint in found)
