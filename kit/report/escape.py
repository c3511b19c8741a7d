"""Foreign text to Markdown: whatever a model, a prompt, a log or a spec says, it can only ever be read as text.

Everything that is not a literal of this package passes through `text` or `code` before it reaches a template. Both
give one line. The rules are those of CommonMark with GitHub's tables, entities where a backslash would not survive a
table cell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["clean", "code", "fence", "label", "paragraphs", "prose", "text"]

LONGEST = 600

# ECMA-48: control sequences, operating-system commands up to BEL or ST, and two-character escapes
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -~]?")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
# Inside a word an underscore is only itself.
_ANYWHERE = r"[&<>|\\`*#~$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
# Brackets make tasks, footnotes and links only in these places; [1.19, 1.36] stays readable.
_SPECIAL = re.compile(_ANYWHERE + r"|^\[|\[(?=\^)|\](?=[(\[:])")
_SPECIAL_IN_LABEL = re.compile(_ANYWHERE + r"|[\[\]]")
_CODE_SPAN = re.compile(r"`([^`|\\]+)`")
_BLOCK_START = re.compile(r"^(?:[-+](?= |$)|[-=](?=[-=]*$)|\d+(?=[.)](?: |$)))")
_BLANK_LINE = re.compile(r"\n\s*\n")


def clean(foreign: str, *, longest: int = LONGEST) -> str:
    """One line without terminal escapes, control, bidirectional or surrogate characters; cut with "…" if too long."""
    visible = (c for c in _TERMINAL.sub("", foreign) if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    line = " ".join("".join(visible).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def text(foreign: str, *, longest: int = LONGEST) -> str:
    """`foreign` as a line of plain prose, in a paragraph, a heading, a list item or a table cell."""
    return _escaped(clean(foreign, longest=longest))


def prose(line: str) -> str:
    """A sentence of the kit's own: as `text`, but pairs of backticks keep their meaning."""
    parts = _CODE_SPAN.split(clean(line, longest=100 * LONGEST))  # every second one is inside a pair
    return "".join(f"`{part}`" if i % 2 else _escaped(part) for i, part in enumerate(parts))


def code(foreign: str, *, longest: int = LONGEST) -> str:
    """`foreign` as a code span; as plain text where it holds a character that would end the span or the cell."""
    line = clean(foreign, longest=longest)
    return f"`{line}`" if line and not {"`", "|"} & set(line) and not line.endswith("\\") else text(line)


def label(foreign: str) -> str:
    """`foreign` as the label of a link or picture, where no bracket may stand for itself."""
    return _SPECIAL_IN_LABEL.sub(_neutral, clean(foreign, longest=100 * LONGEST))


def fence(lines: Sequence[str]) -> str:
    """Lines as a block of code that none of them can close."""
    body = [clean(line, longest=100 * LONGEST) for line in lines]
    longest_run = max((len(run) for line in body for run in re.findall("`+", line)), default=0)
    mark = "`" * max(3, longest_run + 1)
    return "\n".join([f"{mark}text", *body, mark])


def paragraphs(foreign: str) -> str:
    """Text of several paragraphs, each escaped by itself."""
    parts = (text(part, longest=100 * LONGEST) for part in _BLANK_LINE.split(foreign))
    return "\n\n".join(part for part in parts if part)


def _escaped(line: str) -> str:
    return _BLOCK_START.sub(_plain_start, _SPECIAL.sub(_neutral, line))


def _neutral(match: re.Match[str]) -> str:
    mark = match.group()
    return _ENTITIES.get(mark, f"\\{mark}")


def _plain_start(match: re.Match[str]) -> str:
    start = match.group()
    return f"{start}\\" if start.isdigit() else f"\\{start}"
