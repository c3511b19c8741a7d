"""The few facts that a server's log alone can tell: when it ran and in which type it computed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kit.errors import ImportFileError

__all__ = ["LogSpan", "log_dtype", "log_span"]

_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)", re.MULTILINE)
_KV_DTYPE = re.compile(r"KV Cache is allocated\. dtype: torch\.(\w+)")


@dataclass(frozen=True, slots=True)
class LogSpan:
    """First and last stamp of a log, as ISO 8601; the server's clock is taken to be UTC."""

    first: str
    last: str

    def overlaps(self, other: LogSpan) -> bool:
        """Whether both servers were up at some moment."""
        return self.first < other.last and other.first < self.last


def log_span(log: str, *, path: Path) -> LogSpan:
    """Span of a log; ImportFileError when no line is stamped, because launches could not be ordered."""
    stamps = [f"{day}T{time}Z" for day, time in _STAMP.findall(log)]
    if not stamps:
        raise ImportFileError(f"{path}: no line begins with [date time], so launches have no order; restore the log")
    return LogSpan(min(stamps), max(stamps))


def log_dtype(log: str) -> str | None:
    """The type of the KV cache, which follows the model's; None when the log does not say."""
    found = _KV_DTYPE.search(log)
    return found[1] if found else None
