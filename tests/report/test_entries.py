"""Estimates become cells and words that never lose an interval or a reason."""

from __future__ import annotations

import pytest

from kit.format import PLAIN, RATIO, TOKENS_PER_SECOND
from kit.report.entries import column, counted, defined, in_words, level_in_words
from kit.report.table import Entry
from kit.stats import Estimate
from tests.report.samples import around

BARE = Estimate.bare(1.2, n=1, method="one launch", reason="one launch carries no interval")
MISSING = Estimate.missing("never measured")


def test_a_column_has_one_precision_and_a_reason_for_whatever_is_missing() -> None:
    assert column([around(1.272, 0.05), BARE, MISSING], unit=RATIO) == (
        Entry("1.27 [1.22, 1.32]"),
        Entry("1.20", "one launch carries no interval"),
        Entry("–", "never measured"),
    )


def test_a_sentence_carries_unit_and_reason() -> None:
    assert in_words(around(773.0, 20.0), unit=TOKENS_PER_SECOND) == "773 tok/s [753, 793]"
    assert in_words(BARE, unit=PLAIN) == "1.2 (one launch carries no interval)"
    assert in_words(MISSING, unit=PLAIN) == "– (never measured)"


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "launch", "1 launch"), (3, "launch", "3 launches"), (0, "cell", "0 cells"), (11535, "round", "11,535 rounds")],
)
def test_a_count_agrees_with_its_noun(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


@pytest.mark.parametrize(("level", "text"), [(0.95, "95 %"), (0.9, "90 %"), (0.999, "99.9 %")])
def test_a_level_is_a_percentage(level: float, text: str) -> None:
    assert level_in_words(level) == text


def test_a_definition_is_the_one_of_the_table_of_metrics() -> None:
    assert defined("ttft_s") == "from sending a request to its first chunk that holds a token"
