"""A number leaves with its interval or with the reason for having none."""

from __future__ import annotations

import math

import pytest

from kit.errors import SpeckitError
from kit.stats import Estimate, Interval, StatsError


def test_a_missing_number_needs_a_reason() -> None:
    with pytest.raises(StatsError, match="needs its reason"):
        Estimate(None, None, 3, "any")
    with pytest.raises(StatsError, match="needs its reason"):
        Estimate(1.0, None, 3, "any")
    assert Estimate.missing("no rounds").reason == "no rounds"
    assert Estimate.bare(1.0, n=1, method="m", reason="one launch").point == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_a_number_is_not_an_estimate(value: float) -> None:
    with pytest.raises(StatsError, match="not a number"):
        Estimate(value, Interval(0, 1, 0.95), 3, "any")
    with pytest.raises(StatsError, match="is not an interval"):
        Interval(math.nan, 1.0, 0.95)


def test_an_interval_is_ordered_and_has_a_level() -> None:
    with pytest.raises(StatsError, match="order its ends"):
        Interval(2, 1, 0.95)
    with pytest.raises(StatsError, match=r"95 % is 0\.95"):
        Interval(1, 2, 95)
    with pytest.raises(StatsError, match="without a point"):
        Estimate(None, Interval(0, 1, 0.9), 1, "any", "no point")


def test_mapping_keeps_the_ends_in_order() -> None:
    inverse = Estimate(2.0, Interval(1.0, 4.0, 0.95), 5, "m").mapped(lambda x: 1 / x)
    assert inverse.point == 0.5 and inverse.interval == Interval(0.25, 1.0, 0.95)
    assert Estimate.missing("none").mapped(math.exp).point is None


def test_within_a_margin_means_strictly_inside_on_both_sides() -> None:
    assert Interval(-0.01, 0.01, 0.9).within(0.02)
    assert not Interval(-0.02, 0.01, 0.9).within(0.02)
    assert not Interval(-0.01, 0.03, 0.9).within(0.02)


def test_a_refusal_is_an_error_of_the_kit_and_a_value_error() -> None:
    assert issubclass(StatsError, SpeckitError) and issubclass(StatsError, ValueError)
