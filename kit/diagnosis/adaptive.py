"""What a log tells of an adaptive controller: which K it began with, and each change with its second."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from kit.diagnosis.log import Line, read
from kit.units import Seconds

__all__ = ["DepthLog", "depth_log"]

_BEGUN = re.compile(r"AdaptiveSpeculativeParams initialized: steps=(\d+)")
_CHANGED = re.compile(r"Adaptive spec params updated: steps (\d+) -> (\d+)")


@dataclass(frozen=True, slots=True)
class DepthLog:
    """K as the log has it: in force from each of `since_s` on (seconds, whole as SGLang prints them) until `end_s`."""

    depths: tuple[int, ...]
    since_s: tuple[Seconds, ...]
    end_s: Seconds


def depth_log(log_text: str) -> DepthLog | None:
    """The stretches of K in a log; None when no controller was begun, or the lines have no time."""
    lines = [(line, _second(line)) for line in read(log_text)]
    found = [(depth, second) for line, second in lines if second is not None and (depth := _depth(line)) is not None]
    if not found:
        return None
    depths, seconds = zip(*found, strict=True)
    return DepthLog(depths, seconds, max(second for _, second in lines if second is not None))


def _depth(line: Line) -> int | None:
    if begun := _BEGUN.search(line.text):
        return int(begun[1])
    changed = _CHANGED.search(line.text)
    return int(changed[2]) if changed else None


def _second(line: Line) -> Seconds | None:
    return None if line.time is None else datetime.fromisoformat(line.time).replace(tzinfo=UTC).timestamp()
