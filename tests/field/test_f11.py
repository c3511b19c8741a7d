"""The second arm finds the first one's prompts in the prefix cache: its end-to-end numbers are void."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import CellState, Code, Severity, cell_states, check_run
from kit.records import RunFacts
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3
from tests.field.inputs import text

PREFILL = re.compile(r"#new-token: (\d+), #cached-token: (\d+)")


def prefills(name: str) -> list[tuple[int, int]]:
    """Prompt tokens and how many of them came from the cache, of each request in the log."""
    return [(int(new) + int(cached), int(cached)) for new, cached in PREFILL.findall(text("F11", name))]


def warmed(cached: list[tuple[int, int]]) -> RunFacts:
    """A run of one block whose k3 requests report these prompt and cached tokens, in turns."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "none"}, eagle3(3, name="k3")],
        load={"concurrency": [1], "waves": 4, "min_requests": 4},
        design={"blocks": 1},
    )
    facts = build_run(spec)
    launch = next(one.launch for one in facts.launches if one.arm == "k3")
    mine = {
        rep.repetition
        for rep in facts.repetitions
        for cell in facts.cells
        if rep.cell == cell.cell and cell.launch == launch
    }
    requests = tuple(
        replace(one, prompt_tokens=cached[one.index % len(cached)][0], cached_tokens=cached[one.index % len(cached)][1])
        if one.repetition in mine
        else one
        for one in facts.requests
    )
    return replace(facts, requests=requests)


@pytest.mark.parametrize(
    ("cached", "share"),
    [
        (prefills("server_k3.log"), "98.2%"),
        ([(1000, 0), (1000, 1), (1000, 0), (1000, 0)], "0.0%"),
    ],
    ids=["as reported", "one token of one request"],
)
def test_a_warm_cell_is_void_with_the_cached_share(cached: list[tuple[int, int]], share: str) -> None:
    facts = warmed(cached)
    analysis = analyse(facts)
    doubts = [one for one in check_run(facts, analysis) if one.code is Code.CACHED_TOKENS]
    assert {(one.arm, one.severity) for one in doubts} == {("k3", Severity.INVALID)}
    assert all(f"({share})" in one.message for one in doubts)
    assert all("time per output token is of decoding alone" in one.message for one in doubts)
    states = {one.arm: one.state for one in cell_states(analysis.cells, check_run(facts, analysis))}
    assert states == {"none": CellState.VALID, "k3": CellState.INVALID}


def test_the_cold_arm_is_not_doubted() -> None:
    assert {cached for _, cached in prefills("server_none.log")} == {0}
    facts = warmed(prefills("server_none.log"))
    assert not [one for one in check_run(facts, analyse(facts)) if one.code is Code.CACHED_TOKENS]


def test_no_end_to_end_ratio_is_published() -> None:
    verdict = judge(warmed(prefills("server_k3.log")))
    assert [one.comparison.ratio.point for one in verdict.speed.comparisons] == [None]
