"""Checks the body of a `/generate` request the way the server will read it, before anything is sent.

Stricter than SGLang where SGLang is silent: keys it would ignore and values it would coerce are problems
too, because a benchmark whose request means something else than it says is void.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Literal

from kit.contract.model import Field, Problem

__all__ = ["RequestRules", "fits"]

# What other servers call the same thing.
_ELSEWHERE = {
    "seed": "sampling_seed",
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "prompt": "text",
    "prompt_token_ids": "input_ids",
    "request_id": "rid",
    "logprobs": "return_logprob",
    "guided_json": "json_schema",
    "guided_regex": "regex",
}

_INPUTS = ("text", "input_ids", "input_embeds")


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The part of a contract that concerns requests; `limits` are those of `sampling_limits`."""

    version: str
    request: Mapping[str, Field]
    sampling: Mapping[str, Field]
    internal: Mapping[str, Field]
    limits: Mapping[str, Mapping[str, float]]
    exclusive: tuple[str, ...]
    reserved_rid_prefix: str

    def check(self, payload: Mapping[str, object]) -> Iterator[Problem]:
        """Problems of one request body, in the order of its keys."""
        for key, value in payload.items():
            yield from self._top_level(key, value)
        given = [name for name in _INPUTS if payload.get(name) is not None]
        if len(given) != 1:
            yield Problem(" / ".join(_INPUTS), given, f"{len(given)} inputs given, SGLang takes exactly one")
        match payload.get("sampling_params"):
            case dict(params):
                yield from self._sampling(params, "sampling_params")
            case list(batch):
                for position, params in enumerate(batch):
                    if isinstance(params, dict):
                        yield from self._sampling(params, f"sampling_params[{position}]")

    def _top_level(self, key: str, value: object) -> Iterator[Problem]:
        if key not in self.request:
            yield Problem(key, value, f"SGLang {self.version} ignores this key in silence", self._meant(key, "request"))
        elif not fits(self.request[key].type, value):
            yield Problem(key, value, f"is not {self.request[key].type}")
        elif key in _INPUTS and value in ("", []):
            yield Problem(key, value, "is empty, which SGLang refuses")
        elif key == "rid" and any(str(rid).startswith(self.reserved_rid_prefix) for rid in _listed(value)):
            yield Problem(key, value, f"the prefix {self.reserved_rid_prefix} is reserved for health checks")

    def _sampling(self, params: Mapping[str, object], where: str) -> Iterator[Problem]:
        for key, value in params.items():
            yield from self._sampling_key(key, value, f"{where}.{key}")
        together = [name for name in self.exclusive if params.get(name) is not None]
        if len(together) > 1:
            yield Problem(where, together, "SGLang takes at most one of these")

    def _sampling_key(self, key: str, value: object, where: str) -> Iterator[Problem]:
        if key in self.internal:
            yield Problem(where, value, "SGLang sets this key itself; a client must not")
        elif key not in self.sampling:
            yield Problem(where, value, f"SGLang {self.version} has no such sampling key", self._meant(key, "sampling"))
        # SGLang reads null as the default for every sampling key.
        elif value is not None and not fits(self.sampling[key].type, value):
            yield Problem(where, value, f"is not {self.sampling[key].type}")
        elif key in self.limits and isinstance(value, int | float) and not _within(value, self.limits[key]):
            yield Problem(where, value, f"must be {_spelled(self.limits[key])}")

    def _meant(self, key: str, level: Literal["request", "sampling"]) -> str:
        """The key that was probably meant, with its place when that is the other level; or empty."""
        name = _ELSEWHERE.get(key, key)
        if name not in self.sampling and name not in self.request:
            near = get_close_matches(key, [*self.sampling, *self.request], n=1)
            name = near[0] if near else ""
        if level == "sampling" and name not in self.sampling and name:
            return f"{name} beside sampling_params"
        return f"sampling_params.{name}" if level == "request" and name in self.sampling else name


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _within(value: float, limit: Mapping[str, float]) -> bool:
    if value == limit.get("or"):
        return True
    within = limit.get("at_least", value) <= value <= limit.get("at_most", value)
    return within and value > limit.get("above", -math.inf)


def _spelled(limit: Mapping[str, float]) -> str:
    return " and ".join(f"{name.replace('_', ' ')} {bound:g}" for name, bound in sorted(limit.items()))


def fits(annotation: str, value: object) -> bool:
    """Whether a JSON value is of an annotated type; names that JSON does not know accept anything."""
    return _fits(_parsed(annotation), value)


@cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _fits(node: ast.expr, value: object) -> bool:
    match node:
        case ast.Constant(value=None):
            return value is None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _fits(left, value) or _fits(right, value)
        case ast.Subscript(value=ast.Name(id=head), slice=inner):
            return _fits_generic(head, inner, value)
        case ast.Name(id=name):
            return _fits_plain(name, value)
    return True


def _fits_generic(head: str, inner: ast.expr, value: object) -> bool:
    arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    match head:
        case "Optional":
            return value is None or _fits(inner, value)
        case "Union":
            return any(_fits(argument, value) for argument in arguments)
        case "Annotated":
            return _fits(arguments[0], value)
        case "List" | "list" | "Set" | "set":
            return isinstance(value, list) and all(_fits(inner, item) for item in value)
        case "Dict" | "dict":
            return isinstance(value, dict) and all(_fits(arguments[1], item) for item in value.values())
    return True


def _fits_plain(name: str, value: object) -> bool:
    match name:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "str":
            return isinstance(value, str)
    return True
