"""A verdict whose every text is written by an enemy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

HOSTILE = (
    "| a | b |\n|---|---|\n",
    "\n\n# A heading\n\n",
    "</details><script>alert(1)</script><img src=x onerror=y>",
    "`code` ``` ~~~",
    "[link](http://example.org) ![picture](x.png) [x] [^1] <http://example.org>",
    "**bold** _em_ ~~gone~~ $math$",
    "\x1b[31mred\x1b[0m \x1b]8;;http://example.org\x07link\x1b]8;;\x07 \x9b1m",
    "\u202eright to left\u202c \u200bzero width \ud800 surrogate",
    "1. one",
    "- item",
    "---",
    "> quote",
    "    indented\ttab",
    "&lt;b&gt; &#124; \\| \\",
    "",
)


def everywhere(value: T, change: Callable[[str], str], *, keep: frozenset[str] = frozenset()) -> T:
    """`value` with every string in it changed, enums and the fields named in `keep` excepted."""
    changed: T = _changed(value, change, keep)
    return changed


def _changed(value: Any, change: Callable[[str], str], keep: frozenset[str]) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(item, change, keep) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        members = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in keep}
        return replace(value, **{name: _changed(member, change, keep) for name, member in members.items()})
    return value
