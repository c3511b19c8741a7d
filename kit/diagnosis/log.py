"""A server log as lines and failures: who logged what, when, and which exceptions were raised in which order.

Every function here is one pass over the lines, and patterns are anchored and bounded, so that a log of any
size or content costs time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = ["Failure", "Line", "Origin", "Raised", "failures", "read"]

# SGLang prints its whole configuration in one line; nothing worth matching stands so far to the right.
_LINE_LIMIT = 2000
_MESSAGE_LINES = 12

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,10}m")
_CONTAINER_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,10}(?:Z|[+-]\d\d:\d\d) ?")
_PREFIX = re.compile(r"^\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[^\]]{0,60}\] ?")
_EXCEPTION = re.compile(r"^((?:\w{1,80}\.){0,8}\w{0,80}(?:Error|Exception|Interrupt))(?:: |:?$)")

_MARK = "Traceback (most recent call last):"
_LINKS = ("During handling of the above exception", "The above exception was the direct cause")

_PLUGIN_HEADERS = ("Failed to load plugin", "Failed to execute general plugin", "Failed to apply hooks to")
_FATAL_HEADERS = ("hit an exception", "scheduler exception")
_HANDLED_WORDS = ("error", "fail", "exception", "disabled", "ignore")


class Origin(StrEnum):
    """Where an exception surfaced, which tells whether it ended anything."""

    PROCESS = "process"
    REQUEST = "request"
    PLUGIN = "plugin"
    HANDLED = "handled"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: 1-based number, text without SGLang's prefix, and the time in that prefix, if it has one."""

    number: int
    text: str
    time: str | None


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception: the line that names it, its type, its message with the lines that continue it."""

    line: int
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A traceback or a lone exception line.

    `chain` has the exceptions in the order in which they were raised; it is empty when the log was cut before
    the traceback's end. `first` and `last` are line numbers, `time` is that of the nearest line above with one.
    """

    origin: Origin
    header: str
    first: int
    last: int
    time: str | None
    chain: tuple[Raised, ...]

    @property
    def line(self) -> int:
        """Line of the exception that surfaced; of the traceback's start when it was cut."""
        return self.chain[-1].line if self.chain else self.first

    @property
    def exception(self) -> str:
        """Type and first message line of the exception that surfaced; empty when the log was cut."""
        if not self.chain:
            return ""
        surfaced = self.chain[-1]
        return f"{surfaced.type}: {surfaced.message}".partition("\n")[0]


def read(log_text: str) -> list[Line]:
    """Lines without colours, container stamps and SGLang's time prefix; overlong lines are cut."""
    lines = []
    for number, raw in enumerate(log_text.split("\n"), start=1):
        text = raw[:_LINE_LIMIT].rstrip("\r")
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        if text[:1].isdigit():
            text = _CONTAINER_STAMP.sub("", text)
        prefix = _PREFIX.match(text)
        if prefix is not None:
            text = text[prefix.end() :]
        lines.append(Line(number, text, prefix[1] if prefix is not None else None))
    return lines


def failures(lines: Sequence[Line]) -> Iterator[Failure]:
    """Tracebacks and lone exception lines, in log order."""
    position, time = 0, None
    while position < len(lines):
        line = lines[position]
        time = line.time or time
        if _MARK in line.text:
            chain, end = _chain(lines, position)
        elif line.time is None and _EXCEPTION.match(line.text):
            chain, end = _raised(lines, position)
        else:
            position += 1
            continue
        header = _header(lines, position)
        yield Failure(_origin(header), header, line.number, lines[end - 1].number, time, tuple(chain))
        position = end


def _chain(lines: Sequence[Line], start: int) -> tuple[list[Raised], int]:
    """Exceptions of a traceback that begins at `start` and of those linked to it, and the position after."""
    chain: list[Raised] = []
    position = start
    while True:
        position = _after_frames(lines, position + 1)
        raised, position = _raised(lines, position)
        link = _link(lines, position)
        if link is None:
            return [*chain, *raised], position
        # A message of several paragraphs goes on until the sentence that links it to the next traceback.
        rest = "\n".join(line.text for line in lines[position:link])
        chain += [replace(one, message=f"{one.message}\n{rest}".strip()) for one in raised]
        position = next(index for index in range(link, len(lines)) if _MARK in lines[index].text)


def _after_frames(lines: Sequence[Line], position: int) -> int:
    while position < len(lines) and lines[position].time is None and lines[position].text[:1] in (" ", "\t"):
        position += 1
    return position


def _raised(lines: Sequence[Line], position: int) -> tuple[list[Raised], int]:
    """The exception named at `position`, with the lines that continue its message; none when it is not there."""
    end = position
    while end < min(len(lines), position + _MESSAGE_LINES) and _continues(lines[end], first=end == position):
        end += 1
    if end == position:
        return [], position
    text = "\n".join(line.text for line in lines[position:end])
    name, _, message = text.partition(": ")
    return [Raised(lines[position].number, name.strip().rstrip(":"), message)], end


def _continues(line: Line, *, first: bool) -> bool:
    if line.time is not None or not line.text.strip() or _MARK in line.text:
        return False
    return first or _EXCEPTION.match(line.text) is None


def _link(lines: Sequence[Line], position: int) -> int | None:
    """Position of the sentence, soon after `position`, that links a failure to the traceback below it."""
    for index in range(position, min(len(lines), position + _MESSAGE_LINES)):
        if lines[index].time is not None or _MARK in lines[index].text:
            return None
        if lines[index].text.startswith(_LINKS):
            following = lines[index + 1 : index + 4]
            return index if any(_MARK in line.text for line in following) else None
    return None


def _header(lines: Sequence[Line], position: int) -> str:
    """What introduces a failure: the text before the mark, else the log line directly above."""
    before = lines[position].text.partition(_MARK)[0].strip() if _MARK in lines[position].text else ""
    if before or position == 0:
        return before
    above = lines[position - 1]
    # The configuration line holds every word there is; it introduces nothing.
    return above.text if above.time is not None and not above.text.startswith("server_args") else ""


def _origin(header: str) -> Origin:
    lower = header.lower()
    if "Exception in ASGI application" in header:
        return Origin.REQUEST
    if header.startswith(_PLUGIN_HEADERS):
        return Origin.PLUGIN
    if any(phrase in lower for phrase in _FATAL_HEADERS):
        return Origin.PROCESS
    return Origin.HANDLED if any(word in lower for word in _HANDLED_WORDS) else Origin.PROCESS
