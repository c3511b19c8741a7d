"""Answers as SGLang words them: `meta_info`, streamed chunks, errors. The names of a version come from its dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from kit.standin.dialect import Dialect
from kit.standin.request import Request
from kit.standin.text import detokenize
from kit.units import Seconds, Tokens

__all__ = ["DONE", "Wording", "event", "http_error", "stream_error", "value_error"]

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a launch words its answers; `proposals` is the number of drafts a round at launch."""

    dialect: Dialect
    proposals: int

    def answer(self, request: Request, *, since: Tokens, until: Tokens, latency_s: Seconds | None) -> dict[str, Any]:
        """Output tokens `since` to `until`; `latency_s` is given once the request has finished."""
        meta: dict[str, Any] = {
            "id": request.rid,
            "finish_reason": request.finish if latency_s is not None else None,
            "weight_version": "default",
            "completion_tokens": until,
        }
        if latency_s is None or not request.ended_in_queue:
            meta |= _counts(request)
        if request.top_logprobs:
            meta |= _choices(request, since, until)
        if latency_s is not None:
            meta |= self._last(request, until, latency_s)
        told = {"prompt_token_ids": list(request.told_prompt)} if request.told_prompt else {}
        return {
            "text": _text(request, since=since, until=until),
            "output_ids": request.text.tokens[since:until],
            "meta_info": meta,
            **told,
        }

    def _last(self, request: Request, until: Tokens, latency_s: Seconds) -> dict[str, Any]:
        """What only the last `meta_info` has."""
        meta: dict[str, Any] = {"e2e_latency": latency_s}
        if self.dialect.weight_versions:
            meta["weight_versions"] = [{"version": "default", "start": 0, "end": until}]
        if request.histogram and not request.ended_in_queue:
            counts = _speculative(request, until, self.proposals)
            meta |= {key: value for key, value in counts.items() if key in self.dialect.speculative_keys}
        return meta


def _choices(request: Request, since: Tokens, until: Tokens) -> dict[str, Any]:
    """The likeliest tokens of each position; of the prompt's there are none unless asked for, as in SGLang."""
    top = request.text.choices(since, until, top=request.top_logprobs)
    return {
        "input_token_logprobs": [],
        "input_top_logprobs": [],
        "output_token_logprobs": [chosen for chosen, *_ in top],
        "output_token_logprobs_length": until,
        "output_top_logprobs": top,
    }


def _counts(request: Request) -> dict[str, Any]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "num_retractions": request.retractions,
        "reasoning_tokens": 0,
        "cached_tokens": request.cached_tokens,
        "cached_tokens_details": {"device": request.cached_tokens, "host": 0} if request.cached_tokens else None,
        "dp_rank": None,
    }


def _text(request: Request, *, since: Tokens, until: Tokens) -> str:
    """The text of a stretch; what stopped it is not part of it unless the request wants it."""
    tokens, finish = request.text.tokens, request.finish
    if finish is None or finish["type"] != "stop" or not request.trims or until < request.produced:
        return detokenize(tokens[since:until])
    if request.matched is None:
        return detokenize(tokens[since : max(since, until - 1)])
    whole = detokenize(tokens[:until]).partition(request.matched)[0]
    return whole[len(detokenize(tokens[:since])) :]


def _speculative(request: Request, completion_tokens: Tokens, proposals: int) -> dict[str, Any]:
    """The `spec_*` keys of all versions. The histogram is as long as its last entry; without proposals it is alone."""
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


def stream_error(message: str, *, kind: str = "invalid_request_error", code: int = 400) -> dict[str, Any]:
    """An error inside a stream, which has begun with status 200."""
    return {"error": {"message": message, "type": kind, "code": code, "retryable": False}}


def http_error(message: str, *, kind: str, code: int) -> dict[str, Any]:
    """Body of an error that the HTTP side raises: a body of the wrong types, a full queue."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}
