"""Lines of a trace to columns: what only some sources write is read where it is, and unknown where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit.errors import ImportFileError
from kit.importers.jsonl import decoded
from kit.importers.jsonl_trace import joined, trace_of
from kit.records import Trace

PLAIN: dict[str, Any] = {"i": 0, "t": 1.5, "nd": 4, "bs": 2, "r": [["a", 1, 0], ["b", 3, 1]], "a": [2, 0], "g": True}
ADDED: dict[str, Any] = {"l": 1.25, "k": 3, "n": [2, 5], "p": 17, "s": [[3, 1, 8, 0.5]]}


def read(*lines: dict[str, Any], launch: int = 0) -> Trace:
    return trace_of(decoded(map(json.dumps, lines), Path("trace.jsonl")), launch=launch)


def test_what_a_source_does_not_write_is_unknown() -> None:
    its = read(PLAIN).iterations
    assert (its.ready_ns.tolist(), its.draft_tokens.tolist()) == ([1_500_000_000], [4])
    for unknown in (its.launch_ns, its.depth, its.running, its.waiting, its.prefill_tokens):
        assert unknown.tolist() == [-1]
    assert len(read(PLAIN).switches) == 0


def test_what_a_source_adds_is_read() -> None:
    trace = read(PLAIN | ADDED, launch=7)
    its, changes = trace.iterations, trace.switches
    assert (its.launch_ns.tolist(), its.depth.tolist()) == ([1_250_000_000], [3])
    assert (its.running.tolist(), its.waiting.tolist(), its.prefill_tokens.tolist()) == ([2], [5], [17])
    assert (changes.launch.tolist(), changes.number.tolist()) == ([7], [0])
    assert (changes.before.tolist(), changes.after.tolist()) == ([3], [1])
    assert (changes.slot.tolist(), changes.average.tolist(), changes.by_result.tolist()) == ([8], [0.5], [True])


def test_a_retracted_row_is_a_ghost_of_its_own_kind() -> None:
    rounds = read(PLAIN | {"r": [["a", 1, 2], ["b", 3, 1]]}).rounds
    assert (rounds.ghost.tolist(), rounds.retracted.tolist()) == ([True, True], [True, False])


@pytest.mark.parametrize(
    "wrong",
    [
        {"l": -1},
        {"k": 1.5},
        {"n": [1]},
        {"p": "many"},
        {"s": [[3, 1, 8]]},
        {"s": [[3, -1, 8, 0.5]]},
        {"s": 3},
        {"r": [["a", 1, 3], ["b", 3, 1]]},
    ],
    ids=str,
)
def test_an_addition_that_cannot_be_is_refused_by_file_line_and_field(wrong: dict[str, Any]) -> None:
    (field,) = wrong
    with pytest.raises(ImportFileError, match=rf"trace\.jsonl:1: {field}: "):
        read(PLAIN | ADDED | wrong)


def test_traces_of_several_launches_are_joined_without_mixing_them() -> None:
    trace = joined([read(PLAIN | ADDED, launch=0), read(PLAIN, PLAIN | ADDED | {"i": 1}, launch=1)])
    assert trace.iterations.launch.tolist() == [0, 1, 1]
    assert trace.rounds.iteration.tolist() == [0, 0, 1, 1, 2, 2]
    assert [trace.rids[at] for at in trace.rounds.rid] == ["a", "b"] * 3
    assert (trace.switches.launch.tolist(), trace.switches.number.tolist()) == ([0, 1], [0, 1])
    assert np.array_equal(trace.rounds.retracted, np.zeros(6, bool))
