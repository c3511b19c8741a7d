"""`sampling_params` as SGLang reads them: defaults, ranges, words of refusal, and what a strict version names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kit.contract import Contract
from kit.contract.requests import fits
from kit.standin.text import Text, words
from kit.units import Tokens

__all__ = ["Sampling", "read_sampling", "unknown_or_mistyped"]

_UNSIMULATED = ("ebnf", "json_schema", "logit_bias", "regex", "stop_regex", "structural_tag")
_RANGES = {
    "temperature": "a non-negative finite number",
    "top_p": "in (0, 1]",
    "max_new_tokens": "at least 0",
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters that shape an answer here."""

    max_new_tokens: Tokens = 128
    min_new_tokens: Tokens = 0
    temperature: float = 1.0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    no_stop_trim: bool = False

    def end(self, text: Text, *, eos: int) -> tuple[int | None, str | None]:
        """Position of the token that ends a text, and the stop string that it completes, if it does."""
        ends = frozenset() if self.ignore_eos else frozenset({eos, *self.stop_token_ids})
        token = text.first(ends, after=self.min_new_tokens)
        at, matched = _stop_string(text, self.stop) if self.stop else (None, None)
        return (token, None) if at is None or (token is not None and token < at) else (at, matched)


def read_sampling(given: Mapping[str, Any], contract: Contract) -> Sampling:
    """The parameters of one request. Raises TypeError where SGLang answers 500, ValueError where it answers 400."""
    for key in given:
        if key not in contract.rules.sampling and key not in contract.rules.internal:
            raise TypeError(f"Unexpected keyword argument '{key}'")
    for key in _UNSIMULATED:
        if given.get(key):
            raise ValueError(f"the stand-in does not simulate {key}; leave it out")
    for key, limit in contract.rules.limits.items():
        _verify(key, given.get(key), limit)
    stop = given.get("stop") or ()
    return Sampling(
        max_new_tokens=int(_or_default(given.get("max_new_tokens"), 128)),
        min_new_tokens=_or_default(given.get("min_new_tokens"), 0),
        temperature=_or_default(given.get("temperature"), 1.0),
        ignore_eos=bool(given.get("ignore_eos")),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        stop_token_ids=tuple(given.get("stop_token_ids") or ()),
        no_stop_trim=bool(given.get("no_stop_trim")),
    )


def unknown_or_mistyped(given: Mapping[str, Any], contract: Contract) -> str | None:
    """What a strict version says about the first key or type that it does not know; None when it knows all."""
    known = contract.rules.sampling
    for key, value in given.items():
        if key not in known:
            return f"unknown field `{key}`, expected one of {', '.join(f'`{name}`' for name in known)}"
        if value is not None and not fits(known[key].type, value):
            return f"invalid type for `{key}`, expected {known[key].type}"
    return None


def _verify(key: str, value: Any, limit: Mapping[str, float]) -> None:
    """A value that cannot be compared raises TypeError, there as here."""
    if value is None or value == limit.get("or"):
        return
    low, high, above = limit.get("at_least"), limit.get("at_most"), limit.get("above")
    if (low is None or value >= low) and (high is None or value <= high) and (above is None or value > above):
        return
    wanted = _RANGES.get(key) or f"in [{low if above is None else above}, {high}]"
    raise ValueError(f"{key} must be {wanted}, got {value}.")


def _stop_string(text: Text, stops: tuple[str, ...]) -> tuple[int | None, str | None]:
    """Where the first of the stop strings is complete, and which."""
    written = ""
    for position, word in enumerate(words(text.tokens)):
        written += word
        for stop in stops:
            if stop in written[-len(stop) - len(word) :]:
                return position, stop
    return None, None


def _or_default(value: Any, default: Any) -> Any:
    return default if value is None else value
