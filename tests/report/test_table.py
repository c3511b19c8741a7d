"""Tables stay rectangular, and each reason is written once below."""

from __future__ import annotations

import pytest

from kit.report.table import Entry, table


def test_columns_are_padded_and_aligned() -> None:
    assert table(("Arm", "tok/s"), [("`a`", "92.7"), ("`long`", "1,050.0")], align="lr") == (
        "| Arm    |   tok/s |\n|--------|--------:|\n| `a`    |    92.7 |\n| `long` | 1,050.0 |"
    )


def test_a_reason_that_recurs_gets_one_letter_and_one_note() -> None:
    rows = [(Entry("–", "no trace"), Entry("–", "one launch")), (Entry("3"), Entry("–", "no trace"))]
    shown = table(("a", "b"), rows, align="ll")
    assert "| – (a) | – (b) |\n| 3     | – (a) |" in shown
    assert shown.endswith("\n\n- (a) no trace\n- (b) one launch")


def test_there_is_a_letter_for_any_number_of_reasons() -> None:
    shown = table(("x",), [(Entry("–", f"reason {i}"),) for i in range(28)], align="l")
    assert "- (z) reason 25\n- (aa) reason 26\n- (ab) reason 27" in shown


def test_a_reason_is_escaped() -> None:
    assert "- (a) a &#124; b" in table(("x",), [(Entry("–", "a | b"),)], align="l")


@pytest.mark.parametrize(("rows", "align"), [([("1",)], "ll"), ([("1", "2")], "l")])
def test_a_row_of_another_width_is_refused(rows: list[tuple[str, ...]], align: str) -> None:
    with pytest.raises(ValueError, match="does not fit 2 columns"):
        table(("a", "b"), rows, align=align)
