"""What a terminal shows after a run: flags, the answer, one row for each arm and concurrency."""

from __future__ import annotations

from dataclasses import replace

from kit.report import summary
from tests.report.golden import golden
from tests.report.hostile import everywhere
from tests.report.samples import VERDICT, level
from tests.report.test_page import empty


def test_the_summary_is_the_reviewed_one() -> None:
    text = summary(VERDICT) + "\n"
    assert text == golden("sample.txt", actual=text)


def test_the_first_line_is_the_flags() -> None:
    assert summary(VERDICT).splitlines()[0] == "SIMULATED, PARTIAL, GATE FAILED"
    assert summary(replace(VERDICT, headings=())).splitlines()[0] == "NO FLAGS"


def test_a_long_sweep_is_cut_with_a_count_of_the_rest() -> None:
    levels = tuple(level("baseline", concurrency, 100.0) for concurrency in range(1, 41))
    text = summary(replace(VERDICT, speed=replace(VERDICT.speed, levels=levels)))
    assert len(text.splitlines()) <= 24
    assert "28 rows more" in text


def test_nothing_measured_is_said_without_a_table() -> None:
    text = summary(empty(VERDICT))
    assert "tok/s" not in text
    assert "Outputs: not compared" in text


def test_foreign_text_cannot_drive_the_terminal() -> None:
    hostile = everywhere(VERDICT, lambda _: "\x1b[2J\x1b]0;owned\x07\r\nline")
    assert not {c for c in summary(hostile) if c != "\n" and ord(c) < 32}
    assert "owned" not in summary(hostile)
