"""Answers as SGLang 0.5.15 words them: `meta_info`, streamed chunks, errors."""

from __future__ import annotations

from typing import Any

import orjson

from kit.standin.engine import Request
from kit.standin.text import detokenize
from kit.units import Seconds, Tokens

__all__ = ["DONE", "answer", "event", "stream_error", "validation_error", "value_error"]

DONE = b"data: [DONE]\n\n"


def answer(
    request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None, proposals: int
) -> dict[str, Any]:
    """Output tokens `since` to `until`; `latency_s` is given once the request has finished.

    `proposals` is the number of drafts a round at launch; with 0 SGLang leaves all but the histogram out.
    """
    ids = request.text.tokens[since:until]
    finish = request.finish if latency_s is not None else None
    shown = ids[:-1] if finish and finish["type"] == "stop" and ids else ids
    meta: dict[str, Any] = {
        "id": request.rid,
        "finish_reason": finish,
        "prompt_tokens": request.prompt_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        "reasoning_tokens": 0,
        "completion_tokens": until,
        "cached_tokens": request.cached_tokens,
        "cached_tokens_details": {"device": request.cached_tokens, "host": 0} if request.cached_tokens else None,
        "dp_rank": None,
    }
    if latency_s is not None:
        meta["e2e_latency"] = latency_s
        if request.histogram:
            meta |= _speculative(request, until, proposals)
    return {"text": detokenize(shown), "output_ids": ids, "meta_info": meta}


def _speculative(request: Request, completion_tokens: Tokens, proposals: int) -> dict[str, Any]:
    """The `spec_*` keys with the names of 0.5.15 and their aliases; the histogram is as long as its last entry."""
    histogram = list(request.histogram)
    counts = {"spec_correct_drafts_histogram": histogram, "spec_accept_histogram": histogram}
    if not proposals:
        return counts
    rounds = sum(histogram)
    correct = sum(accepted * times for accepted, times in enumerate(histogram))
    proposed = rounds * proposals
    return {
        "spec_accept_rate": correct / proposed,
        "spec_accept_length": completion_tokens / rounds,
        "spec_num_correct_drafts": correct,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": rounds,
        "spec_accepted_drafts": correct,
        "spec_proposed_drafts": proposed,
    } | counts


def event(content: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(content) + b"\n\n"


def value_error(message: str) -> dict[str, Any]:
    """Body of the 400 for a value that SGLang refuses."""
    return {"error": {"message": message}}


def stream_error(message: str) -> dict[str, Any]:
    """The same inside a stream, which has begun with status 200."""
    return {"error": {"message": message, "type": "invalid_request_error", "code": 400, "retryable": False}}


def validation_error(message: str) -> dict[str, Any]:
    """Body of the 400 for a body of the wrong types."""
    return {"object": "error", "message": message, "type": "Bad Request", "param": None, "code": 400}
