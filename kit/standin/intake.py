"""What `/generate` takes: the body's types, the sampling parameters, the context check; refused as SGLang refuses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from kit.contract import Contract
from kit.standin.engine import Request
from kit.standin.settings import Settings
from kit.standin.text import EOS, tokenize
from kit.standin.world import World
from kit.units import Tokens

__all__ = ["Body", "Intake", "Sampling"]

_UNSIMULATED = ("ebnf", "json_schema", "logit_bias", "regex", "stop", "stop_regex", "structural_tag")


class Body(BaseModel):
    """The fields of a request that the stand-in acts on; others are ignored, as SGLang ignores unknown ones."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    rid: str | None = None
    text: str | None = None
    input_ids: list[int] | None = None
    sampling_params: dict[str, Any] | None = None
    stream: bool = False
    return_logprob: bool = False


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters that shape an answer here."""

    max_new_tokens: Tokens = 128
    temperature: float = 1.0
    top_p: float = 1.0
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()


class Intake:
    """Turns bodies into requests of one launch."""

    def __init__(self, world: World, *, settings: Settings, contract: Contract) -> None:
        self._world = world
        self._settings = settings
        self._known = contract.sampling_keys | frozenset(contract.rules.internal)
        self._samples = count(1)
        self._seen: set[tuple[int, ...]] = set()

    def request(self, body: Body) -> Request:
        """The request in `body`.

        Raises ValueError where SGLang answers 400 and TypeError where it answers 500.
        """
        prompt = self._prompt(body)
        sampling = self._sampling(body.sampling_params or {})
        self._check_context(len(prompt), sampling.max_new_tokens)
        # What the pool cannot hold is cut off without a word, as in SGLang.
        limit = min(sampling.max_new_tokens, self._settings.longest_request - len(prompt) - 1)
        length = limit + max(self._settings.largest_draft_tokens, 1) + 1
        text = self._world.answer(
            prompt,
            length=length,
            speculates=self._settings.speculation is not None,
            sample=0 if sampling.temperature < 1e-6 else next(self._samples),
        )
        ends = frozenset() if sampling.ignore_eos else frozenset({EOS, *sampling.stop_token_ids})
        return Request(
            rid=body.rid or uuid4().hex,
            prompt_tokens=len(prompt),
            text=text,
            max_new_tokens=limit,
            stop_at=text.first(ends),
            cached_tokens=self._cached(prompt),
        )

    def flush(self) -> None:
        """Forget the prompts that the radix cache holds."""
        self._seen.clear()

    def _prompt(self, body: Body) -> tuple[int, ...]:
        if body.return_logprob:
            raise ValueError("the stand-in has no log probabilities; leave return_logprob out")
        if body.input_ids is not None:
            if not body.input_ids:
                raise ValueError("input_ids cannot be empty.")
            return tuple(body.input_ids)
        if body.text is None:
            raise ValueError("Either text, input_ids or input_embeds should be provided.")
        if not body.text:
            raise ValueError("texts cannot be empty and tokenizer must be initialized")
        return tokenize(body.text)

    def _sampling(self, given: dict[str, Any]) -> Sampling:
        for key in given:
            if key not in self._known:
                raise TypeError(f"Unexpected keyword argument '{key}'")
        if given.get("n", 1) != 1:
            raise ValueError("the stand-in answers once per request; leave n at 1")
        for key in _UNSIMULATED:
            if given.get(key):
                raise ValueError(f"the stand-in does not simulate {key}; leave it out")
        sampling = Sampling(
            max_new_tokens=_or_default(given.get("max_new_tokens"), 128),
            temperature=_or_default(given.get("temperature"), 1.0),
            top_p=_or_default(given.get("top_p"), 1.0),
            ignore_eos=bool(given.get("ignore_eos")),
            stop_token_ids=tuple(given.get("stop_token_ids") or ()),
        )
        _verify(sampling)
        return sampling

    def _check_context(self, prompt_tokens: Tokens, max_new_tokens: Tokens) -> None:
        """The draft slots that a speculating server reserves count as part of the prompt."""
        length, asked = self._settings.context_length, prompt_tokens + self._settings.reserved_tokens
        if asked >= length:
            raise ValueError(f"The input ({asked} tokens) is longer than the model's context length ({length} tokens).")
        if prompt_tokens > (longest := self._settings.longest_request - 5):
            raise ValueError(
                f"Input length ({prompt_tokens} tokens) exceeds the maximum allowed length ({longest} tokens)."
                " Use a shorter input or enable --allow-auto-truncate."
            )
        if asked + max_new_tokens >= length:
            raise ValueError(
                f"Requested token count exceeds the model's maximum context length of {length} tokens. You requested"
                f" a total of {asked + max_new_tokens} tokens: {asked} tokens from the input messages and"
                f" {max_new_tokens} tokens for the completion. Please reduce the number of tokens in the input"
                " messages or the completion to fit within the limit."
            )

    def _cached(self, prompt: tuple[int, ...]) -> Tokens:
        """Prefix-cache hit. Only whole prompts are remembered, and the last token is always computed."""
        if self._settings.arguments["disable_radix_cache"]:
            return 0
        hit = len(prompt) - 1 if prompt in self._seen else 0
        self._seen.add(prompt)
        return hit


def _or_default(value: Any, default: Any) -> Any:
    return default if value is None else value


def _verify(sampling: Sampling) -> None:
    """Value checks in SGLang's words; a value that cannot be compared raises TypeError, there as here."""
    if sampling.temperature < 0.0:
        raise ValueError(f"temperature must be a non-negative finite number, got {sampling.temperature}.")
    if not 0.0 < sampling.top_p <= 1.0:
        raise ValueError(f"top_p must be in (0, 1], got {sampling.top_p}.")
    if sampling.max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be at least 0, got {sampling.max_new_tokens}.")
