from __future__ import annotations

import pytest

from kit.errors import SpecError
from kit.standin.faults import Faults, LaunchFailure, Strike, parse_faults


def test_without_any_nothing_is_wrong() -> None:
    assert parse_faults([]) == Faults()
    assert [Faults().strike(ordinal) for ordinal in (1, 2, 3)] == [None] * 3
    assert Faults().launch_failure is None


def test_a_fault_is_named_with_dashes_and_may_carry_a_value() -> None:
    faults = parse_faults(["crash-after=0", "wrong-model=other/name", "nan", "cap-48", "late-host", "slow-start=3"])
    assert (faults.crash_after, faults.wrong_model, faults.nan, faults.cap_48) == (0, "other/name", 1, True)
    assert (faults.late_host, faults.slow_start) == (20, 3)


@pytest.mark.parametrize("strike", Strike)
def test_a_fault_of_requests_strikes_all_or_every_nth(strike: Strike) -> None:
    assert [parse_faults([strike]).strike(ordinal) for ordinal in (1, 2)] == [strike] * 2
    third = parse_faults([f"{strike}=3"])
    assert [third.strike(ordinal) for ordinal in range(1, 7)] == [None, None, strike, None, None, strike]


@pytest.mark.parametrize("failure", LaunchFailure)
def test_a_launch_fails_as_asked(failure: LaunchFailure) -> None:
    assert parse_faults([failure]).launch_failure is failure


def test_an_unknown_fault_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"no such fault; known are http-500-empty, .*drop-trace, .*length-before-stop"):
        parse_faults(["htp-500"])


@pytest.mark.parametrize(
    "text, problem",
    [
        ("crash-after", "needs a value .*; write crash-after=VALUE"),
        ("crash-after=soon", "takes a whole number above 0, not soon"),
        ("nan=0", "takes a whole number above 0, not 0"),
        ("cap-48=32", "takes no value, not 32"),
        ("retract=-1", "takes a whole number"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        parse_faults([text])
