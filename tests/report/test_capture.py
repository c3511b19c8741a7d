"""The report on a real capture: SGLang 0.5.15.post1 with EAGLE3 on one H200, recorded before this kit existed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.importers.capture import import_capture
from kit.report import pictures, render, summary, verdict_json
from kit.verdict import Verdict, judge
from tests.report.golden import golden

CAPTURE = Path(__file__).parent.parent / "data" / "captures" / "h200-smollm2-triton"


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return judge(import_capture(CAPTURE))


def test_the_document_is_the_reviewed_one(verdict: Verdict) -> None:
    document = render(verdict)
    assert document == golden("h200-smollm2-triton.md", actual=document)


def test_the_summary_is_the_reviewed_one(verdict: Verdict) -> None:
    text = summary(verdict) + "\n"
    assert text == golden("h200-smollm2-triton.txt", actual=text)


def test_the_first_line_warns_that_nothing_was_measured_here(verdict: Verdict) -> None:
    assert render(verdict).startswith("**IMPORTED**: ")


def test_speeds_are_shown_with_the_reason_why_they_carry_no_word(verdict: Verdict) -> None:
    document = render(verdict)
    for tok_s in ("725", "3,107", "7,293"):
        assert f" {tok_s} (" in document
    assert "an imported capture supports no word about speed" in document


def test_throughput_of_the_whole_run_is_drawn_where_there_is_no_window(verdict: Verdict) -> None:
    shown = pictures(verdict)
    assert sorted(shown) == ["acceptance", "classes", "cost", "depth", "throughput"]
    assert "(whole run)" in shown["throughput"].alt
    assert "baseline: 725 at 1, 3,107 at 8, 7,293 at 32" in shown["throughput"].alt


def test_every_number_can_be_written_as_json(verdict: Verdict) -> None:
    assert '"point": 0.43' in verdict_json(verdict)
