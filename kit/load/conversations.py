"""Prompts in the forms of others: ShareGPT conversations and OpenAI messages. Pure.

Only what stands before the first reply is sent: later turns would put another model's words into this one's mouth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["opening"]

_ROLES = {"human": "user", "user": "user", "system": "system"}


def opening(row: Mapping[str, Any]) -> str | None:
    """System and user text before the first reply, with blank lines between; None for a row of neither form.

    Raises ValueError for a row of such a form without any such text, or with parts that are not text.
    """
    turns = _turns(row)
    if turns is None:
        return None
    texts: list[str] = []
    for role, content in turns:
        if role not in _ROLES:
            break
        texts.append(_text(content))
    if not any(_ROLES.get(role) == "user" for role, _ in turns[: len(texts)]) or not "".join(texts).strip():
        raise ValueError("no user text before the first reply")
    return "\n\n".join(texts)


def _turns(row: Mapping[str, Any]) -> list[tuple[str, Any]] | None:
    body = row.get("body")
    messages = row.get("messages", body.get("messages") if isinstance(body, Mapping) else None)
    if isinstance(messages, list):
        return [(str(each.get("role")), each.get("content")) for each in map(_mapping, messages)]
    conversations = row.get("conversations")
    if isinstance(conversations, list):
        return [(str(each.get("from")), each.get("value")) for each in map(_mapping, conversations)]
    return None


def _mapping(turn: Any) -> Mapping[str, Any]:
    if not isinstance(turn, Mapping):
        raise ValueError(f"a turn is an object, not {type(turn).__name__}")
    return turn


def _text(content: Any) -> str:
    """Text of a turn, given as such or as a list of text parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(p, Mapping) and isinstance(p.get("text"), str) for p in content):
        return "".join(part["text"] for part in content)
    raise ValueError("a turn holds something that is not text")
