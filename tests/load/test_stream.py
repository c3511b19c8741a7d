"""Raw answers become records: every failure is named, every token is counted once, nothing raises."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.load import Exchange, Prompt, to_record
from kit.load.stream import events
from kit.records import NO_TEXT, Outcome, RequestRecord

PROMPT = Prompt("code-1", "code", "Write a loop.", 5)


def event(total: int, new: list[int], **meta: Any) -> dict[str, Any]:
    return {"text": "a word ", "output_ids": new, "meta_info": {"id": "r0", "completion_tokens": total, **meta}}


def final(total: int, new: list[int], finish: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return event(total, new, finish_reason=finish, prompt_tokens=3, cached_tokens=0, **meta)


LENGTH = {"type": "length", "length": 5}
ROUNDS = {"spec_verify_ct": 2, "spec_num_correct_drafts": 2, "spec_correct_drafts_histogram": [1, 0, 1]}
STREAM = [event(1, [7]), event(2, [8]), final(5, [9, 10, 11], LENGTH, **ROUNDS)]


def body(*parts: dict[str, Any] | bytes) -> bytes:
    lines = [part if isinstance(part, bytes) else orjson.dumps(part) for part in parts]
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


def record(*pieces: bytes, speculative: bool = True, **changes: Any) -> RequestRecord:
    stamped = [(100 + 10 * at, piece) for at, piece in enumerate(pieces)]
    exchange = Exchange("r0", sent_ns=90, ended_ns=999, status=200, pieces=stamped)
    for name, value in changes.items():
        setattr(exchange, name, value)
    return to_record(exchange, PROMPT, repetition=4, index=2, speculative=speculative)


def test_a_clean_stream_gives_tokens_times_and_counts() -> None:
    made = record(*(body(part) for part in STREAM), body(b"[DONE]"))
    assert (made.outcome, made.error, made.completion_tokens, made.histogram) == (Outcome.OK, None, 5, (1, 0, 1))
    assert made.output_ids.tolist() == [7, 8, 9, 10, 11]
    assert (made.chunk_ns.tolist(), made.chunk_tokens.tolist()) == ([100, 110, 120], [1, 1, 3])
    assert (made.first_token_ns, made.repetition, made.index, made.prompt) == (100, 4, 2, "code-1")


def test_cumulative_streams_give_the_same_ids_as_incremental_ones() -> None:
    cumulative = [event(1, [7]), event(2, [7, 8]), final(5, [7, 8, 9, 10, 11], LENGTH, **ROUNDS)]
    made = record(*(body(part) for part in cumulative), body(b"[DONE]"))
    assert made.output_ids.tolist() == [7, 8, 9, 10, 11]


@given(st.lists(st.integers(1, 400), max_size=12))
def test_piece_boundaries_change_nothing_but_the_stamps(cuts: list[int]) -> None:
    whole = body(*STREAM, b"[DONE]")
    edges = sorted({0, len(whole), *(cut % len(whole) for cut in cuts)})
    made = record(*(whole[a:b] for a, b in itertools.pairwise(edges)))
    assert made.output_ids.tolist() == [7, 8, 9, 10, 11]
    assert int(made.chunk_tokens.sum()) == 5
    assert bool(np.all(np.diff(made.chunk_ns) >= 0))


@pytest.mark.parametrize(("texts", "error"), [(("", "", ""), NO_TEXT), (("a", "", ""), None), (("", "", None), None)])
def test_tokens_without_a_character_of_text_are_marked(texts: tuple[str | None, ...], error: str | None) -> None:
    parts = [part | {"text": text} for part, text in zip(STREAM, texts, strict=True)]
    made = record(body(*parts, b"[DONE]"))
    assert (made.outcome, made.error) == (Outcome.OK, error)


def test_an_event_is_stamped_when_its_last_byte_arrives() -> None:
    assert list(events([(1, b"data: {"), (2, b"}"), (3, b"\n\ndata: [DO"), (4, b"NE]\n")])) == [
        (3, b"{}"),
        (4, b"[DONE]"),
    ]


FAILURES: dict[str, tuple[dict[str, Any], list[bytes], Outcome, str]] = {
    "an empty 500": ({"status": 500}, [b""], Outcome.HTTP_ERROR, "empty body"),
    "a 500 with text": ({"status": 500}, [b"Internal Server Error"], Outcome.HTTP_ERROR, "Internal Server Error"),
    "an error inside a 200": ({}, [body({"error": {"message": "bad"}}, b"[DONE]")], Outcome.STREAM_ERROR, "bad"),
    "a stream without an end": ({}, [body(*STREAM[:2])], Outcome.CUT, "without a final chunk"),
    "an empty 200": ({}, [], Outcome.CUT, "without a final chunk"),
    "an abort": ({}, [body(final(1, [7], {"type": "abort"}))], Outcome.ABORTED, "aborted"),
    "NaN logits": ({}, [body(final(1, [7], {"type": "stop", "matched": "NaN happened"}))], Outcome.NAN, "NaN"),
    "no token": ({}, [body(final(0, [], {"type": "stop"}))], Outcome.EMPTY, "no token"),
    "no JSON": ({}, [b"data: {nope}\n\n"], Outcome.MALFORMED, "JSONDecodeError"),
    "no meta_info": ({}, [body({"text": "x"})], Outcome.MALFORMED, "meta_info"),
    "ids that do not add up": ({}, [body(event(3, [7]))], Outcome.MALFORMED, "output_ids"),
    "no counts under speculation": ({}, [body(final(2, [7, 8], LENGTH))], Outcome.MALFORMED, "spec_verify_ct"),
    "a broken connection": (
        {"status": None, "broken": Outcome.RESET, "error": "ReadError"},
        [],
        Outcome.RESET,
        "ReadError",
    ),
    "a cut body": ({"broken": Outcome.CUT, "error": "peer closed"}, [body(*STREAM[:1])], Outcome.CUT, "peer closed"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_has_its_name_and_its_words(name: str) -> None:
    changes, pieces, outcome, words = FAILURES[name]
    made = record(*pieces, **changes)
    assert made.outcome is outcome
    assert words in (made.error or "")


@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from([200, 500]))
def test_arbitrary_bytes_never_raise_and_never_pass(pieces: list[bytes], status: int) -> None:
    made = record(*pieces, status=status)
    assert made.outcome is not Outcome.OK


KEYS = st.sampled_from(["meta_info", "completion_tokens", "finish_reason", "output_ids", "error", "type"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text("ab", max_size=5)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@given(st.lists(JSON, max_size=3))
def test_arbitrary_json_events_never_raise(values: list[Any]) -> None:
    made = record(b"".join(b"data: " + orjson.dumps(value) + b"\n\n" for value in values))
    assert (made.outcome is Outcome.OK) == (made.error in (None, NO_TEXT))


@pytest.mark.parametrize("incremental", [True, False])
def test_the_choices_of_every_chunk_come_to_one_list(incremental: bool) -> None:
    ids = [7, 8, 9, 10, 11]
    choices = [[[-0.1, token, None], [-2.0, token + 1, None]] for token in ids]

    def part(since: int, until: int) -> dict[str, Any]:
        first = since if incremental else 0
        meta = {"output_top_logprobs": choices[first:until], "output_token_logprobs": [[-0.1, 7, None]]}
        if until == 5:
            return final(until, ids[first:], LENGTH, **meta)
        return event(until, ids[first:until], **meta)

    made = record(*(body(part(*span)) for span in ((0, 1), (1, 3), (3, 5))), speculative=False)
    assert (made.outcome, made.error) == (Outcome.OK, None)
    assert (made.meta_info or {})["output_top_logprobs"] == choices
    assert "output_token_logprobs" not in (made.meta_info or {})
