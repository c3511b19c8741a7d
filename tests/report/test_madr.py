"""The draft of a decision record: MADR's headings, its grammar, and nothing decided that was not measured."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from kit.records import Origin
from kit.report import ReportPaths, madr, with_headings_from
from kit.stats import LosslessWord, SweepWord
from kit.verdict import Heading, Verdict, judge
from tests.builders import build_run, build_spec, eagle3
from tests.captures import H200, facts_of
from tests.report.golden import golden
from tests.report.hostile import HOSTILE, everywhere
from tests.report.samples import VERDICT
from tests.report.test_page import NAMES

PATHS = ReportPaths(Path("reports/a.md"), Path("reports/a"), Path("reports/README.md"), "0" * 64)
HEADINGS = (
    "## Context and Problem Statement",
    "## Decision Drivers",
    "## Considered Options",
    "## Decision Outcome",
    "### Consequences",
    "### Confirmation",
    "## Pros and Cons of the Options",
    "## More Information",
)


@cache
def everywhere_faster() -> Verdict:
    """One arm, faster at every level, with the baseline's outputs."""
    spec = build_spec(arms=[{"kind": "baseline", "name": "baseline"}, eagle3(3)])
    return judge(build_run(spec, cost=lambda depth, batch: 0.010))


def headings(document: str) -> list[str]:
    return re.findall(r"^#{1,6} .*$", re.sub(r"^```.*?^```", "", document, flags=re.M | re.S), re.M)


def lint(document: str) -> list[str]:
    """What markdownlint asks for with the settings of MADR itself: MD001, 004, 009, 012, 022, 025, 032, 047."""
    body = document.partition("\n---\n")[2]
    lines = body.split("\n")
    found = [f"trailing space: {line!r}" for line in lines if line != line.rstrip()]
    found += ["two blank lines"] if "\n\n\n" in body else []
    found += ["ends in more or less than one newline"] if not re.search(r"[^\n]\n\Z", body) else []
    depths = [len(heading.split(" ")[0]) for heading in headings(body)]
    found += ["not one title"] if depths.count(1) != 1 else []
    found += [f"from level {a} to {b}" for a, b in pairwise(depths) if b > a + 1]
    for at, line in enumerate(lines[1:-1], start=1):
        if re.match(r"#{1,6} ", line) and (lines[at - 1] or lines[at + 1]):
            found.append(f"no blank line around {line!r}")
        if re.match(r"[-+] ", line):
            found.append(f"another list marker: {line!r}")
        if line.startswith("* ") and lines[at - 1] and not lines[at - 1].startswith("* "):
            found.append(f"no blank line before the list at {line!r}")
    return found


def documents() -> list[str]:
    return [madr(verdict, PATHS) for verdict in (VERDICT, everywhere_faster(), judge(facts_of(H200)))]


def test_the_draft_is_the_reviewed_one() -> None:
    document = madr(everywhere_faster(), PATHS)
    assert document == golden("madr.md", actual=document)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_headings_are_those_of_madr_in_their_order(at: int) -> None:
    document = documents()[at]
    assert [one for one in headings(document)[1:] if one in HEADINGS] == list(HEADINGS)
    assert lint(document) == []
    options = re.findall(r"^### (.*)$", document.partition("## Pros and Cons")[2], re.M)
    considered = document.partition("## Considered Options")[2].partition("## Decision Outcome")[0]
    assert options == re.findall(r"^\* (.*)$", considered, re.M)


def test_the_status_is_proposed_and_people_are_left_open() -> None:
    for document in documents():
        front = document.split("---\n")[1].splitlines()
        assert front[0] == 'status: "proposed"'
        assert front[1].startswith("date: 2026-11-")
        assert front[2:] == ["decision-makers:", "consulted:", "informed:"]


def test_an_arm_that_is_faster_everywhere_and_lossless_is_chosen_by_name() -> None:
    document = madr(everywhere_faster(), PATHS)
    assert 'Chosen option: "eagle3_k3 (EAGLE3, K = 3)", because ' in document
    assert "\n* Good, because eagle3_k3 gives " in document


@pytest.mark.parametrize("word", [LosslessWord.VIOLATED, LosslessWord.UNRESOLVED])
def test_no_speed_makes_up_for_outputs_that_are_not_shown_to_be_the_same(word: LosslessWord) -> None:
    verdict = everywhere_faster()
    rows = tuple(replace(row, word=word) for row in verdict.losslessness.rows)
    document = madr(replace(verdict, losslessness=replace(verdict.losslessness, rows=rows)), PATHS)
    assert "No option is supported by this run: eagle3_k3 is faster at every measured level, but " in document
    assert "Chosen option" not in document


def test_two_arms_that_win_are_not_ranked() -> None:
    verdict = everywhere_faster()
    second = replace(verdict.speed.arms[0], arm="other")
    document = madr(replace(verdict, speed=replace(verdict.speed, arms=(*verdict.speed.arms, second))), PATHS)
    assert "the run does not rank them" in document


def test_an_undecided_run_supports_no_option_and_says_what_would_settle_it() -> None:
    verdict = everywhere_faster()
    open_arms = tuple(replace(arm, word=SweepWord.INCONCLUSIVE, undecided=(1, 4)) for arm in verdict.speed.arms)
    document = madr(replace(verdict, speed=replace(verdict.speed, arms=open_arms)), PATHS)
    assert "No option is supported by this run" in document
    assert "\n* More launches of eagle3_k3 and baseline at concurrency 1, 4.\n" in document


def test_a_baseline_that_wins_everywhere_is_an_option_to_choose() -> None:
    verdict = everywhere_faster()
    lost = tuple(replace(arm, word=SweepWord.BASELINE_DOMINATES) for arm in verdict.speed.arms)
    document = madr(replace(verdict, speed=replace(verdict.speed, arms=lost)), PATHS)
    assert 'Chosen option: "baseline (no speculation)", because ' in document


@pytest.mark.parametrize("origin", [Origin.SIMULATED, Origin.IMPORTED])
def test_what_was_not_measured_on_a_host_decides_nothing_for_one(origin: Origin) -> None:
    verdict = everywhere_faster()
    document = madr(replace(verdict, what_ran=replace(verdict.what_ran, origin=origin)), PATHS)
    assert "No option is supported by this run" in document


def test_flags_stand_below_the_title() -> None:
    verdict = replace(everywhere_faster(), headings=(Heading.PARTIAL, Heading.NOT_PINNED))
    lines = madr(verdict, PATHS).split("---\n", 2)[2].strip().splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].startswith("**PARTIAL**")


@pytest.mark.parametrize("words", HOSTILE)
def test_foreign_text_cannot_alter_the_record(words: str) -> None:
    plain = madr(everywhere(VERDICT, lambda _: "xharmless", keep=NAMES), PATHS)
    document = madr(everywhere(VERDICT, lambda _: f"x{words}", keep=NAMES), PATHS)
    assert [len(one.split(" ")[0]) for one in headings(document)] == [len(one.split(" ")[0]) for one in headings(plain)]
    assert "<script" not in re.sub(r"`[^`]*`", "", document)


def test_headings_move_together_and_code_stays() -> None:
    document = "# A\n\n## B\n\n```text\n# no heading\n```\n\n###### F\n"
    assert with_headings_from(3, document) == "### A\n\n#### B\n\n```text\n# no heading\n```\n\n###### F\n"
    assert with_headings_from(1, document) == document
