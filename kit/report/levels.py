"""Headings moved down, so that a document can be pasted below a heading of another."""

from __future__ import annotations

import re

__all__ = ["DEEPEST", "with_headings_from"]

DEEPEST = 6
_HEADING = re.compile(r"(#{1,6}) ")
_FENCE = re.compile(r" {0,3}(`{3,})")


def with_headings_from(level: int, document: str) -> str:
    """`document` with its first heading at `level`; code is left alone, and nothing goes below the sixth."""
    lines, fence = document.split("\n"), ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or len(mark[1]) >= len(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            lines[at] = "#" * min(len(heading[1]) + level - 1, DEEPEST) + line[len(heading[1]) :]
    return "\n".join(lines)
