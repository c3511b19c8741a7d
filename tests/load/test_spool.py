"""Bytes of answers beyond the limit go to a file and come back the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kit.load.spool import Spool

PIECES = st.lists(st.tuples(st.integers(0, 2**62), st.binary(max_size=40)), max_size=6)


@given(st.lists(PIECES, max_size=6), st.integers(0, 120))
def test_what_is_kept_is_what_was_given_wherever_it_lies(answers: list[list[tuple[int, bytes]]], limit: int) -> None:
    spool = Spool(limit)
    kept = [spool.keep(list(answer)) for answer in answers]
    assert [list(pieces) for pieces in kept] == answers
    assert [list(pieces[1:]) for pieces in kept] == [answer[1:] for answer in answers]
    assert spool.received_bytes == sum(len(data) for answer in answers for _, data in answer)
    assert spool.received_bytes - spool.spooled_bytes <= limit


def test_below_the_limit_nothing_is_copied() -> None:
    pieces = [(1, b"abc")]
    assert Spool(3).keep(pieces) is pieces
    assert Spool(2).keep(pieces) is not pieces
