"""Without a trace only the candidates of K are known, and the bounds hold whatever was in force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.stats import km, untraced_curve


@settings(max_examples=50)
@given(data=st.data())
def test_bounds_without_a_trace_hold_those_with_it(data: st.DataObject) -> None:
    """Whatever K was in force, as long as it was a candidate; with K = 0 rounds in bin 0 or left out."""
    candidates = data.draw(st.sets(st.integers(0, 7), min_size=1))
    deepest = max(candidates)
    rows = data.draw(
        st.lists(
            st.sampled_from(sorted(candidates)).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))),
            min_size=1,
            max_size=60,
        )
    )
    drafted = [row for row in rows if row[0]]
    counted = rows if data.draw(st.booleans()) else drafted
    if not drafted or not deepest:
        return
    hist = np.bincount([accepted for _, accepted in counted], minlength=deepest + 1)[None]
    found = untraced_curve(hist, candidates=candidates)
    for row, bound in zip(km(drafted, Kmax=deepest), found, strict=True):
        lower, upper = bound.lower.point, bound.upper.point
        assert lower is not None and lower <= (row["lower"] or 0) + 1e-12
        assert upper is None or (row["upper"] or 0) - 1e-12 <= upper <= 1 + 1e-12


def test_a_round_short_of_the_smallest_candidate_was_rejected_and_is_no_doubt() -> None:
    (first, second, third) = untraced_curve(np.array([[4, 2, 3, 1]]), candidates={3})
    for bound, share in ((first, 0.6), (second, 0.4), (third, 0.1)):
        assert bound.lower.point == bound.upper.point == pytest.approx(share)
