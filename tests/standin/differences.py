"""What differs between two answers to one request, by status, type, keys and types of values, not by their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx

__all__ = ["Answer", "differences", "received", "recorded"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; `body` is JSON, text, or the events of a stream as `_Stream`."""

    status: int | None
    content_type: str | None
    body: Any


def recorded(response: dict[str, Any]) -> Answer:
    """An answer from a recording."""
    content_type = response["headers"].get("content-type")
    body = response["text"] if response["json"] is None else response["json"]
    return Answer(response["status"], content_type, _events(body) if _streams(content_type) else body)


def received(response: httpx.Response) -> Answer:
    """An answer that has just come."""
    content_type = response.headers.get("content-type")
    if _streams(content_type):
        return Answer(response.status_code, content_type, _events(response.text))
    is_json = content_type == "application/json"
    return Answer(response.status_code, content_type, response.json() if is_json else response.text)


def differences(expected: Answer, found: Answer, *, nullable: frozenset[str]) -> Iterator[str]:
    """Each as a line of words. Where the status differs nothing else is compared; `nullable` keys may be null or not.

    Elements of lists and events of streams have no place of their own in the words.
    """
    if expected.status != found.status:
        yield f"status {found.status} instead of {expected.status}"
        return
    if expected.content_type != found.content_type:
        yield f"content-type {found.content_type} instead of {expected.content_type}"
    for place, problem in _differ(expected.body, found.body, ()):
        if place and place[-1] in nullable and "null" in problem:
            continue
        yield f"{'.'.join(place)} {problem}".strip()


def _streams(content_type: str | None) -> bool:
    return (content_type or "").startswith("text/event-stream")


def _events(text: str) -> _Stream:
    *events, close = [line.removeprefix("data: ") for line in text.splitlines() if line]
    first, *others = map(json.loads, events)
    return _Stream(first, others[:-1], others[-1:], close)


class _Stream(NamedTuple):
    """Its first event, those between, its last, and the line that closes it."""

    first: Any
    between: list[Any]
    last: list[Any]
    close: str


def _differ(expected: Any, found: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    match expected, found:
        case dict(), dict():
            for key in expected.keys() ^ found.keys():
                yield (*place, key), "is missing" if key in expected else "is too much"
            for key in expected.keys() & found.keys():
                yield from _differ(expected[key], found[key], (*place, key))
        case ((list() | tuple()), (list() | tuple())):
            # How many there are is a matter of the text.
            for one, other in zip(expected, found, strict=False):
                yield from _differ(one, other, place)
        case _ if type(expected) is not type(found):
            yield place, f"is {_name(found)} instead of {_name(expected)}"


def _name(value: Any) -> str:
    return "null" if value is None else type(value).__name__
