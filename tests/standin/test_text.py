from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kit.standin.text import BOS, VOCABULARY, Text, detokenize, tokenize, uniforms


@given(st.integers(0, 2**64 - 1), st.integers(1, 5), st.integers(1, 60))
def test_a_longer_hash_keeps_what_a_shorter_one_said(key: int, streams: int, length: int) -> None:
    longer = uniforms(key, streams=streams + 1, length=length + 7)
    assert np.array_equal(uniforms(key, streams=streams, length=length), longer[:streams, :length])


def test_hashed_numbers_are_uniform_and_streams_unrelated() -> None:
    first, second = uniforms(11, streams=2, length=20_000)
    assert abs(first.mean() - 0.5) < 0.01
    assert abs(first.var() - 1 / 12) < 0.003
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) < 1


def test_a_round_accepts_the_run_that_begins_where_it_starts() -> None:
    text = Text(tokens=[3] * 7, margin=np.array([1.0, 1, 1, -1, 1, -1, 1]))
    assert [text.accepted(start, depth=2) for start in range(7)] == [2, 2, 1, 0, 1, 0, 1]
    assert [text.accepted(start, depth=5) for start in range(7)] == [3, 2, 1, 0, 1, 0, 1]
    assert text.accepted(0, depth=0) == 0


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(1, 8))
def test_a_draft_is_accepted_iff_all_bits_up_to_it_are_one(bits: list[bool], depth: int) -> None:
    text = Text(tokens=[3] * len(bits), margin=np.where(bits, 0.5, -0.5))
    for start in range(len(bits)):
        accepted = text.accepted(start, depth=depth)
        for draft in range(1, min(depth, len(bits) - start) + 1):
            assert (accepted >= draft) == all(bits[start : start + draft])


def test_a_negative_shift_refuses_what_is_barely_accepted_at_greater_depth() -> None:
    text = Text(tokens=[3] * 4, margin=np.array([0.5, 0.04, 0.5, 0.5]), shift=-0.01)
    assert text.accepted(0, depth=1) == 1
    assert text.accepted(0, depth=3) == 3
    assert text.accepted(0, depth=7) == 1


@given(st.text(max_size=60))
def test_every_text_has_ids_within_the_vocabulary(text: str) -> None:
    ids = tokenize(text)
    assert ids[0] == BOS
    assert all(0 <= token < VOCABULARY for token in ids)
    assert ids == tokenize(text)


def test_words_are_distinct_and_special_tokens_silent() -> None:
    words = {detokenize([token]) for token in range(3, VOCABULARY)}
    assert len(words) == VOCABULARY - 3
    assert detokenize([1, 2]) == ""
