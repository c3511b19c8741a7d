"""Due times of an open loop: the rate that was asked for, whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import SpecError
from kit.load.pacing import constant, poisson

RATES = st.floats(0.01, 10_000)


@given(st.integers(0, 50), RATES)
def test_a_constant_rate_starts_at_once_and_spaces_evenly(requests: int, rate: float) -> None:
    due = constant(requests, per_second=rate)
    assert len(due) == requests
    assert due[:1] in ((), (0.0,))
    assert np.allclose(np.diff(due), 1 / rate)


@given(st.integers(0, 50), RATES, st.integers(0, 2**32))
def test_poisson_times_ascend_and_depend_on_the_seed_alone(requests: int, rate: float, seed: int) -> None:
    due = poisson(requests, per_second=rate, seed=seed)
    assert len(due) == requests
    assert list(due) == sorted(due)
    assert due == poisson(requests, per_second=rate, seed=seed)


def test_poisson_gaps_have_the_mean_and_spread_of_the_exponential() -> None:
    gaps = np.diff(poisson(40_000, per_second=8.0, seed=3))
    assert gaps.mean() == pytest.approx(1 / 8, rel=0.02)
    assert gaps.std() == pytest.approx(1 / 8, rel=0.03)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(SpecError, match="requests per second"):
        constant(3, per_second=rate)
    with pytest.raises(SpecError, match="requests per second"):
        poisson(3, per_second=rate, seed=0)
