"""What `/generate` takes: the body's types, single and batched; the context check; refused as SGLang refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from kit.contract import Contract
from kit.standin.request import Request
from kit.standin.sampling import read_sampling, unknown_or_mistyped
from kit.standin.settings import Settings
from kit.standin.text import EOS, Text, tokenize
from kit.standin.world import World
from kit.units import Tokens

__all__ = ["Body", "Intake"]

Parameters = dict[str, Any]


class Body(BaseModel):
    """The fields of a request that the stand-in acts on; others are ignored, as SGLang ignores unknown ones."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    rid: str | list[str] | None = None
    text: str | list[str] | None = None
    input_ids: list[int] | list[list[int]] | None = None
    sampling_params: Parameters | list[Parameters] | None = None
    stream: bool = False
    return_logprob: bool = False
    top_logprobs_num: int = 0
    logprob_start_len: int = -1
    return_text_in_logprobs: bool = False
    return_prompt_token_ids: bool = False

    @property
    def batched(self) -> bool:
        """Whether the answer is a list."""
        return isinstance(self.text, list) or _nested(self.input_ids) or self.samples > 1

    @property
    def samples(self) -> int:
        """`n`: answers to each prompt. Raises TypeError for what SGLang cannot compare with 1 or multiply by."""
        n = next(iter(self.parameters), {}).get("n", 1)
        if not isinstance(n, int | float):
            raise TypeError(f"'>' not supported between instances of '{type(n).__name__}' and 'int'")
        if n > 1 and not isinstance(n, int):
            raise TypeError("can't multiply sequence by non-int of type 'float'")
        return max(int(n), 1)

    @property
    def parameters(self) -> list[Parameters]:
        """All the sampling parameters in it."""
        if isinstance(self.sampling_params, list):
            return self.sampling_params
        return [] if self.sampling_params is None else [self.sampling_params]


@dataclass(frozen=True, slots=True)
class _Part:
    """One prompt (token ids) of a body."""

    rid: str
    prompt: tuple[int, ...]
    parameters: Parameters


class Intake:
    """Turns bodies into requests of one launch. With `leftover`, the radix cache is on and holds every prompt."""

    def __init__(self, world: World, *, settings: Settings, contract: Contract, leftover: bool = False) -> None:
        self._world = world
        self._settings = settings
        self._contract = contract
        self._leftover = leftover
        self._samples = count(1)
        self._seen: set[tuple[int, ...]] = set()
        self._told: list[tuple[int, ...]] = []

    def refusal(self, body: Body) -> str | None:
        """Why a strict version does not even begin with a body; None when it does, and always in other versions."""
        if not self._settings.dialect.strict:
            return None
        reasons = (unknown_or_mistyped(parameters, self._contract) for parameters in body.parameters)
        return next(filter(None, reasons), None)

    def requests(self, body: Body) -> list[Request]:
        """The requests in `body`.

        Raises ValueError where SGLang answers 400 and TypeError where it answers 500.
        """
        if body.return_logprob and (body.logprob_start_len >= 0 or body.return_text_in_logprobs):
            raise ValueError(
                "the stand-in has no log probabilities of prompts, and no texts beside them; leave them out"
            )
        parts = list(_parts(body))
        found = [self._request(part) for part in parts]
        for request, part in zip(found, parts, strict=True):
            request.top_logprobs = max(body.top_logprobs_num, 1) if body.return_logprob else 0
            if body.return_prompt_token_ids:
                request.told_prompt = part.prompt
                self._told.append(part.prompt)
        return found

    def request(self, body: Body) -> Request:
        """The only request in `body`; raises as `requests` does."""
        (request,) = self.requests(body)
        return request

    def flush(self) -> None:
        """Forget the prompts that the radix cache holds."""
        self._seen.clear()

    def _request(self, part: _Part) -> Request:
        prompt, settings = part.prompt, self._settings
        sampling = read_sampling(part.parameters, self._contract)
        self._check_context(len(prompt), part.parameters.get("max_new_tokens"))
        # What context and pool cannot hold is cut off without a word, as in SGLang.
        limit = min(sampling.max_new_tokens, settings.longest_request - len(prompt) - 1)
        length, greedy = limit + max(settings.largest_draft_tokens, 1) + 1, sampling.temperature < 1e-6
        text = (self._continued(prompt, length) if greedy else None) or self._world.answer(
            prompt,
            length=length,
            speculates=settings.speculation is not None,
            sample=0 if greedy else next(self._samples),
        )
        stop_at, matched = sampling.end(text, eos=EOS)
        return Request(
            rid=part.rid,
            prompt_tokens=len(prompt),
            text=text,
            max_new_tokens=limit,
            stop_at=stop_at,
            matched=matched,
            trims=not sampling.no_stop_trim,
            stop_first=settings.dialect.stop_first,
            runs_to_limit=sampling.ignore_eos,
            cached_tokens=self._cached(prompt),
        )

    def _continued(self, prompt: tuple[int, ...], length: Tokens) -> Text | None:
        """The rest of an answer of this launch, when `prompt` is a prompt that it told and the answer's beginning."""
        for known in self._told:
            done = len(prompt) - len(known)
            if done > 0 and prompt[: len(known)] == known:
                speculates = self._settings.speculation is not None
                whole = self._world.answer(known, length=done + length, speculates=speculates)
                if tuple(whole.tokens[:done]) == prompt[len(known) :]:
                    return whole.after(done)
        return None

    def _check_context(self, prompt_tokens: Tokens, max_new_tokens: Tokens | None) -> None:
        """The draft slots that a speculating server reserves count as part of the prompt.

        Only a number of new tokens that the request states is checked; the default is cut.
        """
        length, asked = self._settings.context_length, prompt_tokens + self._settings.reserved_tokens
        if asked >= length:
            raise ValueError(f"The input ({asked} tokens) is longer than the model's context length ({length} tokens).")
        if prompt_tokens > (longest := self._settings.longest_request - 5):
            raise ValueError(
                f"Input length ({prompt_tokens} tokens) exceeds the maximum allowed length ({longest} tokens)."
                " Use a shorter input or enable --allow-auto-truncate."
            )
        if max_new_tokens is not None and asked + max_new_tokens > length:
            raise ValueError(
                f"Requested token count exceeds the model's maximum context length of {length} tokens. You requested"
                f" a total of {asked + max_new_tokens} tokens: {asked} tokens from the input messages and"
                f" {max_new_tokens} tokens for the completion. Please reduce the number of tokens in the input"
                " messages or the completion to fit within the limit."
            )

    def _cached(self, prompt: tuple[int, ...]) -> Tokens:
        """Prefix-cache hit. Only whole prompts are remembered, and the last token is always computed."""
        if self._leftover:
            return len(prompt) - 1
        if self._settings.arguments["disable_radix_cache"]:
            return 0
        hit = len(prompt) - 1 if prompt in self._seen else 0
        self._seen.add(prompt)
        return hit


def _parts(body: Body) -> Iterator[_Part]:
    """The prompts of a body with their ids and parameters; with n above 1 SGLang replaces the ids."""
    prompts = list(_prompts(body))
    parameters = body.parameters
    if not isinstance(body.sampling_params, list):
        parameters = (parameters or [{}]) * len(prompts)
    if len(parameters) != len(prompts):
        raise ValueError(f"The number of sampling_params ({len(parameters)}) does not match {len(prompts)} prompts.")
    for rid, prompt, given in zip(_rids(body, len(prompts)), prompts, parameters, strict=True):
        if body.samples == 1:
            yield _Part(rid, prompt, given)
        else:
            yield from (_Part(uuid4().hex, prompt, given) for _ in range(body.samples))


def _prompts(body: Body) -> Iterator[tuple[int, ...]]:
    """Token ids win over text, though an empty text is refused with them too."""
    if body.input_ids is not None:
        if not body.input_ids:
            raise ValueError("input_ids cannot be empty.")
        nested: Any = body.input_ids if _nested(body.input_ids) else [body.input_ids]
        yield from map(tuple, nested)
    elif body.text is None:
        raise ValueError("Either text, input_ids or input_embeds should be provided.")
    elif not body.text:
        raise ValueError("texts cannot be empty and tokenizer must be initialized")
    else:
        yield from map(tokenize, [body.text] if isinstance(body.text, str) else body.text)


def _rids(body: Body, prompts: int) -> list[str]:
    match body.rid:
        case None:
            return [uuid4().hex for _ in range(prompts)]
        case str(rid) if isinstance(body.text, list) or _nested(body.input_ids):
            return [f"{rid}_{number}" for number in range(prompts)]
        case str(rid):
            return [rid]
    if len(body.rid) != prompts:
        raise ValueError("The number of rids must be the same as the batch size.")
    if len(set(body.rid)) != prompts:
        raise ValueError(f"Duplicate request IDs detected within the request: {body.rid}")
    return body.rid


def _nested(input_ids: list[int] | list[list[int]] | None) -> bool:
    return bool(input_ids) and isinstance((input_ids or [0])[0], list)
