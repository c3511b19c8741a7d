"""Numbers become text that a reader can compare down a column."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.format import (
    COUNT,
    MILLISECONDS,
    MISSING,
    PERCENT,
    PLAIN,
    RATIO,
    SECONDS,
    SHARE,
    TOKENS_PER_SECOND,
    Reading,
    Unit,
    aligned,
    count,
    missing,
    probability,
    sentence,
)

UNITS = (COUNT, MILLISECONDS, PERCENT, PLAIN, RATIO, SECONDS, SHARE, TOKENS_PER_SECOND)
units = st.sampled_from(UNITS)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def readings(draw: st.DrawFn, values: st.SearchStrategy[float] = finite) -> Reading:
    lo, point, hi = sorted(draw(st.tuples(values, values, values)))
    return draw(st.sampled_from([Reading(point), Reading(point, lo, hi), Reading(None)]))


def places(text: str) -> set[int]:
    numbers = text.replace("[", "").replace("]", "").replace(", ", " ").split()
    return {len(number.partition(".")[2]) for number in numbers if number != MISSING}


def test_a_ratio_keeps_two_decimals() -> None:
    column = [Reading(1.2734, 1.1911, 1.3562), Reading(0.7171, 0.6670, 0.7672)]
    assert aligned(column, unit=RATIO) == ("1.27 [1.19, 1.36]", "0.72 [0.67, 0.77]")


def test_a_narrow_interval_gets_the_digits_that_show_it() -> None:
    assert aligned([Reading(1.0204, 1.0176, 1.0231)], unit=RATIO) == ("1.020 [1.018, 1.023]",)


def test_a_column_takes_the_precision_of_its_smallest_number() -> None:
    column = [Reading(92.71, 91.2, 94.3), Reading(773.44, 729.0, 789.2), Reading(3450.12)]
    assert aligned(column, unit=TOKENS_PER_SECOND) == ("92.7 [91.2, 94.3]", "773.4 [729.0, 789.2]", "3,450.1")


def test_seconds_are_printed_as_milliseconds() -> None:
    assert aligned([Reading(0.00952, 0.0091, 0.0099)], unit=MILLISECONDS) == ("9.52 [9.10, 9.90]",)


def test_a_fraction_is_printed_as_a_percentage() -> None:
    assert aligned([Reading(0.0123)], unit=PERCENT) == ("1.23",)


def test_prose_carries_the_symbol_of_the_unit() -> None:
    assert sentence(Reading(773.0, 729.0, 789.0), unit=TOKENS_PER_SECOND) == "773 tok/s [729, 789]"
    assert sentence(Reading(0.05), unit=PERCENT) == "5.00 %"
    assert sentence(Reading(1.2, 1.1, 1.3), unit=RATIO) == "1.20 [1.10, 1.30]"


def test_a_small_loss_is_never_minus_zero() -> None:
    assert aligned([Reading(-0.00001)], unit=Unit("", most=2)) == ("0.00",)


def test_counts_have_thousands_separators() -> None:
    assert count(11535) == "11,535"


def test_a_small_p_is_bounded_instead_of_zero() -> None:
    assert [probability(p) for p in (0.0, 0.00021, 0.0312, 1.0)] == ["<0.001", "<0.001", "0.031", "1.000"]


def test_a_missing_number_says_why() -> None:
    assert missing("one launch carries no interval") == "– (one launch carries no interval)"
    assert aligned([Reading(None)], unit=RATIO) == (MISSING,)
    assert sentence(Reading(None), unit=PERCENT) == MISSING


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="cannot be printed"):
        Reading(value)


def test_half_an_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="one end"):
        Reading(1.0, lo=0.5)


@given(st.lists(readings()), units)
def test_every_finite_number_has_a_text(column: list[Reading], unit: Unit) -> None:
    texts = aligned(column, unit=unit)
    assert len(texts) == len(column)
    assert all(text.isprintable() and text for text in texts)


@given(st.lists(readings(st.floats(-1e9, 1e9)), min_size=1), units)
def test_a_column_has_one_precision(column: list[Reading], unit: Unit) -> None:
    assert len(set().union(*map(places, aligned(column, unit=unit)))) <= 1


@given(readings(st.floats(-1e9, 1e9)), units)
def test_rounding_keeps_the_point_between_its_ends(reading: Reading, unit: Unit) -> None:
    (text,) = aligned([reading], unit=unit)
    if "[" in text:
        point, lo, hi = (float(part) for part in text.replace(",", "").replace("[", "").replace("]", "").split())
        assert lo <= point <= hi


@given(st.floats(0.001, 1e9), units)
def test_a_printed_point_is_within_half_a_step_of_the_value(value: float, unit: Unit) -> None:
    (text,) = aligned([Reading(value)], unit=unit)
    step = 10.0 ** -len(text.partition(".")[2])
    assert abs(float(text.replace(",", "")) - value * unit.scale) <= 0.5 * step + 1e-6 * abs(value * unit.scale)
