"""Facts about SGLang that only reading its code can tell, each tied to the text it was read from.

`reviewed.toml` holds them. A fact has readings; a reading has the functions that were read, their digests in
every version where a person found the same thing, and what was found. Extraction looks the digests up again,
so a function that changed upstream stops the extraction until somebody has read it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.contract.source import Sources
from kit.errors import ImportFileError

__all__ = ["Fact", "Reading", "facts", "reviewed"]

_TABLE = Path(__file__).with_name("reviewed.toml")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a set of functions says; `digests` has one row per distinct text, in the order of `functions`."""

    functions: tuple[str, ...]
    digests: frozenset[tuple[str, ...]]
    value: object


@dataclass(frozen=True, slots=True)
class Fact:
    """One named fact and its readings, newest first."""

    name: str
    readings: tuple[Reading, ...]


def facts(path: Path = _TABLE) -> tuple[Fact, ...]:
    """The reviewed table."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Fact(name, tuple(_readings(entries))) for name, entries in table.items())


def _readings(entries: Iterable[dict[str, Any]]) -> Iterator[Reading]:
    for entry in entries:
        rows = frozenset(tuple(row) for row in entry["digests"])
        yield Reading(tuple(entry["functions"]), rows, entry["value"])


def reviewed(sources: Sources, table: Iterable[Fact] | None = None) -> dict[str, object]:
    """`{fact: {"value": ..., "read_from": [functions]}}` for the SGLang in `sources`.

    Raises:
        ImportFileError: a function is not the one that was read; names the function.
    """
    return {fact.name: _current(fact, sources) for fact in (facts() if table is None else table)}


def _current(fact: Fact, sources: Sources) -> dict[str, object]:
    for reading in fact.readings:
        if tuple(_digest(sources, name) for name in reading.functions) in reading.digests:
            return {"value": reading.value, "read_from": list(reading.functions)}
    raise ImportFileError(_unread(fact, sources))


def _digest(sources: Sources, name: str) -> str:
    """Digest of `path:qualified_name`, or empty when the file or the function is not there."""
    path, _, qualified_name = name.partition(":")
    function = sources.module(path).function(qualified_name) if sources.has(path) else None
    return function.sha256 if function is not None else ""


def _unread(fact: Fact, sources: Sources) -> str:
    newest = fact.readings[0]
    for position, name in enumerate(newest.functions):
        digest = _digest(sources, name)
        if digest not in {row[position] for row in newest.digests}:
            break
    state = f"is not the text that was read (sha256 {digest})" if digest else "is gone"
    return (
        f"SGLang {sources.version()}: {name} {state}; "
        f"read it, then state {fact.name!r} for it in kit/contract/{_TABLE.name}"
    )
