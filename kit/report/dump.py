"""A tree of dataclasses as JSON: every number in full, nothing formatted, nothing that is not a number."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from kit.errors import SpeckitError
from kit.verdict import Verdict

__all__ = ["JsonValue", "as_json", "verdict_json"]

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


def verdict_json(verdict: Verdict) -> str:
    """The verdict as one JSON object: `schema_version` first, then its fields in the order of their definition.

    Enums are their values. A number that is absent is null and has its `reason` beside it. SpeckitError on NaN or
    infinity, naming the field.
    """
    tree = {"schema_version": verdict.version} | {
        name: value for name, value in _members(verdict, path="verdict") if name != "version"
    }
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"


def as_json(value: Any, *, path: str) -> JsonValue:
    """`value` in JSON's own types; `path` names it in errors. SpeckitError on what JSON cannot hold."""
    if isinstance(value, Enum):
        return as_json(value.value, path=path)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _finite(value, path)
    if isinstance(value, (tuple, list)):
        return [as_json(item, path=f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(key): as_json(item, path=f"{path}.{key}") for key, item in value.items()}
    if is_dataclass(value):
        return dict(_members(value, path=path))
    raise SpeckitError(f"{path} is a {type(value).__name__}, which JSON cannot hold; turn it into a plain value")


def _members(value: Any, *, path: str) -> Iterable[tuple[str, JsonValue]]:
    for member in fields(value):
        yield member.name, as_json(getattr(value, member.name), path=f"{path}.{member.name}")


def _finite(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise SpeckitError(f"{path} is {value}, not a number; report it as missing, with a reason")
    return float(value)
