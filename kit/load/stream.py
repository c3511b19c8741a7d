"""From the raw bytes of an answer to a request record: parsed after the cell, so that parsing costs no measurement.

SSE lines arrive in pieces that respect no boundary. An event gets the arrival time of the piece that completed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from kit.load.arrivals import Piece
from kit.load.workload import Prompt
from kit.records import NO_TEXT, Outcome, RequestRecord
from kit.sglang import ContractViolation, Meta, read_meta
from kit.units import Nanoseconds

__all__ = ["Exchange", "events", "to_record"]

_DONE = b"[DONE]"
_CHOICES = "output_top_logprobs"
_PROMPT_IDS = "prompt_token_ids"
# Log-probabilities that nobody reads: the chosen token's, which stand in the list of choices too, and the prompt's.
_BULK = frozenset({"output_token_logprobs", "input_token_logprobs", "input_top_logprobs", "output_token_ids_logprobs"})
_NAN = "NaN happened"


@dataclass(slots=True)
class Exchange:
    """What the driver saw of one request: stamps and bytes, no interpretation.

    `broken` is how the transport failed, with its message in `error`; None when the body ended properly. `due_ns` is
    when the request should have gone out and `written_ns` when it did, both 0 where there is no such time.
    """

    rid: str
    sent_ns: Nanoseconds = 0
    ended_ns: Nanoseconds = 0
    status: int | None = None
    pieces: Sequence[Piece] = ()
    broken: Outcome | None = None
    error: str | None = None
    due_ns: Nanoseconds = 0
    written_ns: Nanoseconds = 0
    reads: int = 0
    unstamped: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """The events of a 200 stream, put together; `textless` when each of them carried a text without a character."""

    chunk_ns: list[Nanoseconds]
    chunk_tokens: list[int]
    output_ids: list[int]
    textless: bool
    final: dict[str, Any] | None


def events(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """(arrival, payload) of every `data:` line, the closing `[DONE]` included. A torn last line is not an event."""
    rest = b""
    for at_ns, data in pieces:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield at_ns, line[5:].strip()


def to_record(exchange: Exchange, prompt: Prompt, *, repetition: int, index: int, speculative: bool) -> RequestRecord:
    """The record of one request. Nothing raises: whatever is wrong becomes the outcome and its error text."""
    base = RequestRecord(
        repetition=repetition,
        index=index,
        rid=exchange.rid,
        prompt=prompt.id,
        prompt_class=prompt.prompt_class,
        max_new_tokens=prompt.max_new_tokens,
        sent_ns=exchange.sent_ns,
        ended_ns=exchange.ended_ns,
        outcome=exchange.broken or Outcome.OK,
        status=exchange.status,
        error=exchange.error,
    )
    if exchange.status != 200:
        body = b"".join(data for _, data in exchange.pieces)[:500].decode("utf-8", "replace")
        return replace(
            base, outcome=exchange.broken or Outcome.HTTP_ERROR, error=exchange.error or body or "empty body"
        )
    try:
        answer = _assemble(exchange.pieces)
    except _StreamError as error:
        return replace(base, outcome=Outcome.STREAM_ERROR, error=str(error))
    except (ContractViolation, ValueError, KeyError, TypeError) as error:
        return replace(base, outcome=Outcome.MALFORMED, error=f"{type(error).__name__}: {error}")
    return _judged(base, exchange, answer, speculative)


class _StreamError(Exception):
    """The server reported an error inside a 200 stream."""


def _assemble(pieces: Sequence[Piece]) -> _Answer:
    chunk_ns: list[int] = []
    chunk_tokens: list[int] = []
    ids: list[int] = []
    choices: list[Any] = []
    textless = True
    final = None
    for at_ns, payload in events(pieces):
        if payload == _DONE:
            break
        event = orjson.loads(payload)
        if "error" in event:
            raise _StreamError(str(event["error"])[:500])
        meta, new = event["meta_info"], event.get("output_ids") or []
        textless = textless and event.get("text") == ""
        tokens = meta["completion_tokens"] - sum(chunk_tokens)
        ids = _joined(ids, new, tokens, meta["completion_tokens"], "output_ids")
        if tokens > 0:
            chunk_ns.append(at_ns)
            chunk_tokens.append(tokens)
        if _CHOICES in meta:
            choices = _joined(choices, meta[_CHOICES] or [], tokens, meta["completion_tokens"], _CHOICES)
        if meta.get("finish_reason") is not None:
            final = _kept(event)
    if final is not None and choices:
        final[_CHOICES] = choices
    return _Answer(chunk_ns, chunk_tokens, ids, textless, final)


def _kept(event: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of the last event: its `meta_info` without bulk, and the prompt's ids where it tells them."""
    meta = {name: value for name, value in event["meta_info"].items() if name not in _BULK}
    return meta | {name: event[name] for name in (_PROMPT_IDS,) if name in event}


def _joined(so_far: list[Any], new: list[Any], tokens: int, total: int, name: str) -> list[Any]:
    """One entry a position so far: a chunk brings either only the new ones (incremental streaming) or all of them."""
    if len(new) == tokens:
        return so_far + new
    if len(new) == total:
        return new
    raise ContractViolation(f"a chunk brings {len(new)} {name} for {tokens} new tokens of {total}")


def _judged(base: RequestRecord, exchange: Exchange, answer: _Answer, speculative: bool) -> RequestRecord:
    if answer.final is None:
        return replace(
            base,
            outcome=exchange.broken or Outcome.CUT,
            error=exchange.error or "the stream ended without a final chunk",
        )
    try:
        meta = read_meta(answer.final, speculative=speculative)
    except ContractViolation as error:
        return replace(base, outcome=Outcome.MALFORMED, error=str(error))
    outcome, trouble = _finish(meta, exchange, textless=answer.textless)
    return replace(
        base,
        outcome=outcome,
        error=trouble,
        first_token_ns=answer.chunk_ns[0] if answer.chunk_ns else None,
        finish_reason=meta.finish_reason,
        prompt_tokens=meta.prompt_tokens,
        completion_tokens=meta.completion_tokens,
        cached_tokens=meta.cached_tokens,
        verify_rounds=meta.verify_rounds,
        correct_drafts=meta.correct_drafts,
        histogram=meta.histogram,
        retractions=meta.retractions,
        meta_info=answer.final,
        output_ids=np.array(answer.output_ids, np.int64),
        chunk_ns=np.array(answer.chunk_ns, np.int64),
        chunk_tokens=np.array(answer.chunk_tokens, np.int64),
    )


def _finish(meta: Meta, exchange: Exchange, *, textless: bool) -> tuple[Outcome, str | None]:
    if meta.finish_reason == "abort":
        return Outcome.ABORTED, "the server aborted the request"
    if meta.matched == _NAN:
        return Outcome.NAN, "the server reports NaN logits"
    if meta.completion_tokens == 0:
        return Outcome.EMPTY, "the answer has no token"
    if exchange.broken is not None:
        return exchange.broken, exchange.error
    return Outcome.OK, NO_TEXT if textless else None
