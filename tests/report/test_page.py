"""The document says everything there is, in one order, and nothing that foreign text put there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from kit.analysis import Costs, Heterogeneity, ThroughputBasis
from kit.report import Extras, render
from kit.verdict import DoubtsSection, Heading, Verdict
from tests.report.golden import golden
from tests.report.hostile import HOSTILE, everywhere
from tests.report.samples import VERDICT

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SECTIONS = [
    "Verdict",
    "Gate",
    "Losslessness",
    "Saturation",
    "What speculation costs here",
    "Acceptance",
    "Who profits",
    "Oracle",
    "Adaptive in force",
    "What a load switch could win",
    "Doubts",
    "What ran",
    "Limits",
    "What was not measured and why",
    "Run it again",
    "Notes",
    "Files",
]
EXTRAS = Extras(notes="Tried topk 4.\n\nGave it up: *too slow*.", command="make run", files={"verdict.json": "ab" * 32})
# Their text decides what is drawn and how rows are matched, so it stays as it is
NAMES = frozenset({"arm", "name", "baseline", "metric", "arms", "created_utc"})


def empty(verdict: Verdict) -> Verdict:
    """The verdict of a run that measured nothing."""
    speed = replace(verdict.speed, arms=(), comparisons=(), crossovers=(), levels=(), cells=(), truth=(), classes=())
    gates = replace(verdict.gate.gates, movements=(), residuals=(), naive_passes=None, prompts_needed=None)
    v1 = replace(gates.v1, cells=(), worst=None, functional=(), reason="fewer than two depths")
    v2 = replace(gates.v2, cells=(), control=(), control_word=None, reason="no trace")
    ran = replace(
        verdict.what_ran, declarations=(), resumptions=(), models=(), engine=(), host=(), arms=(), launches=()
    )
    return replace(
        verdict,
        headings=(),
        speed=replace(speed, aa_speed=(), closing=()),
        gate=replace(verdict.gate, gates=replace(gates, v1=v1, v2=v2)),
        losslessness=replace(verdict.losslessness, rows=(), aa_tokens=()),
        saturation=(),
        peaks=(),
        costs=Costs(ThroughputBasis.FULL_RUN, (), (), None, "no fixed chain has an account"),
        acceptance=(),
        oracles=(),
        heterogeneity=Heterogeneity((), (), "no trace"),
        adaptive=(),
        depth_paces=(),
        doubts=DoubtsSection((), (), (), (), (), ()),
        what_ran=replace(ran, iteration_times=(), trace=(), trace_costs=()),
        limits=(),
        not_measured=(),
    )


def headings(document: str) -> list[str]:
    return re.findall(r"^## (.*)$", document, re.MULTILINE)


_READ = ("text", "text_special", "code_inline")


def structure(document: str) -> list[str]:
    """Every block and inline token, as a browser would build them, but for text and the code spans that show names."""
    kinds: list[str] = []
    for token in MARKDOWN.parse(document):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or () if child.type not in _READ]
    return kinds


def test_the_document_is_the_reviewed_one() -> None:
    document = render(VERDICT, extras=EXTRAS)
    assert document == golden("sample.md", actual=document)


def test_a_run_without_any_number_says_so_in_every_section() -> None:
    document = render(empty(VERDICT))
    assert document == golden("empty.md", actual=document)


@pytest.mark.parametrize("verdict", [VERDICT, empty(VERDICT)], ids=["full", "empty"])
def test_every_section_is_there_in_order_and_none_is_empty(verdict: Verdict) -> None:
    document = render(verdict)
    assert headings(document) == SECTIONS
    bodies = re.split(r"^## .*$", document, flags=re.MULTILINE)[1:]
    assert all(body.strip() for body in bodies)


def test_the_first_line_holds_every_flag_with_its_meaning() -> None:
    first = render(replace(VERDICT, headings=tuple(Heading))).splitlines()[0]
    assert [part.split("**")[1] for part in first.split(" · ")] == [heading.value for heading in Heading]
    assert all(part.split("**: ")[1] for part in first.split(" · "))


def test_without_flags_the_first_line_says_that_there_are_none() -> None:
    assert render(replace(VERDICT, headings=())).startswith("**NO FLAGS**: ")


@pytest.mark.parametrize("verdict", [VERDICT, empty(VERDICT)], ids=["full", "empty"])
def test_the_source_is_tidy(verdict: Verdict) -> None:
    document = render(verdict, extras=EXTRAS)
    assert "\n\n\n" not in document
    assert not re.search(r"[ \t]$", document, re.MULTILINE)
    assert "None" not in document.replace("None are stated", "")


def test_no_table_is_wider_than_nine_columns() -> None:
    rules = re.findall(r"^\|[-:|]+\|$", render(VERDICT, extras=EXTRAS), re.MULTILINE)
    assert rules
    assert max(rule.count("|") - 1 for rule in rules) <= 9


def test_every_note_letter_in_a_table_is_explained_below_it() -> None:
    for block in re.split(r"\n\n(?=\|)", render(VERDICT)):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        notes = re.findall(r"^- \(([a-z]+)\) \S", block.split("\n#")[0], re.MULTILINE)
        used = re.findall(r" \(([a-z])\)(?= +\|)", "\n".join(rows))
        assert set(used) == set(notes)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_text_changes_no_part_of_the_document(words: str) -> None:
    assert structure(_said_everywhere(words)) == structure(_said_everywhere("harmless"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_arm_changes_no_part_of_the_document(name: str) -> None:
    assert structure(_with_arm(f"x{name}")) == structure(_with_arm("harmless"))


def test_terminal_escapes_never_reach_the_document() -> None:
    document = _said_everywhere("\x1b[31mred\x07\x1b[2J")
    assert not {c for c in document if c != "\n" and ord(c) < 32}


def _said_everywhere(words: str) -> str:
    """The document with these words in every text of the verdict and around it."""
    verdict = everywhere(VERDICT, lambda _: f"x{words}", keep=NAMES)
    notes = " ".join(words.split())  # blank lines in notes are meant to make paragraphs
    return render(verdict, extras=Extras(notes=f"x{notes}", command=f"x{words}"))


def _with_arm(name: str) -> str:
    """The document with the adaptive arm under another name, wherever it stands."""
    return render(everywhere(VERDICT, lambda said: name if said == "adaptive" else said))


def test_a_part_of_a_spec_and_a_fault_are_run_again_as_they_were() -> None:
    said = ("PARTIAL: arms baseline, k3 of baseline, k1, k3", "PARTIAL: 1 of 3 blocks", "FAULT ASKED FOR: k3:nan=2")
    verdict = replace(VERDICT, what_ran=replace(VERDICT.what_ran, declarations=said))
    assert "\nspeckit run specs/quickstart.yaml --arms baseline,k3 --blocks 1 --fault k3:nan=2\n" in render(verdict)
