"""What a server's log says of its load: how much it admits, and how each logged batch was decoded.

The formats are SGLang's own (`Decode batch, #running-req: ...`, older `Decode batch. ` and `Decode batch [n], `). A
decode line comes every 40 iterations, so a short run has none: absence is no evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kit.units import TokensPerSecond

__all__ = ["DecodeLine", "admission_limit", "decode_lines", "eager_from", "retracted_in"]

_LIMIT = re.compile(r"\bmax_running_requests=(\d+)")
_DECODE = re.compile(r"Decode batch(?: \[\d+\])?[,.] (?P<fields>#running-req: .*)")


@dataclass(frozen=True, slots=True)
class DecodeLine:
    """One logged batch; a field that this version does not log is None. `retracted` counts since the server's start."""

    running: int
    queued: int | None
    cuda_graph: bool | None
    throughput: TokensPerSecond | None
    retracted: int | None = None


def retracted_in(log: str) -> int | None:
    """Requests retracted since the server started: the gauge is cumulative. None where no line has it."""
    counts = [line.retracted for line in decode_lines(log) if line.retracted is not None]
    return max(counts, default=None)


def admission_limit(log: str) -> int | None:
    """Most requests the server runs at once, from its capacity line; None when it printed none."""
    found = _LIMIT.findall(log)
    return int(found[-1]) if found else None


def decode_lines(log: str) -> tuple[DecodeLine, ...]:
    """Every decode line of `log` that can be read, in order."""
    return tuple(line for match in _DECODE.finditer(log) if (line := _line(dict(_pairs(match["fields"])))) is not None)


def eager_from(log: str) -> int | None:
    """Smallest batch that was logged without a CUDA graph and never with one; None when there is none."""
    lines = decode_lines(log)
    captured = max((line.running for line in lines if line.cuda_graph), default=0)
    return min((line.running for line in lines if line.cuda_graph is False and line.running > captured), default=None)


def _pairs(fields: str) -> list[tuple[str, str]]:
    return [(name.strip(), value.strip()) for name, _, value in (part.partition(":") for part in fields.split(","))]


def _line(fields: dict[str, str]) -> DecodeLine | None:
    running = fields.get("#running-req", "")
    if not running.isdecimal():
        return None
    queued, graph = fields.get("#queue-req", ""), fields.get("cuda graph")
    retracted = fields.get("#retracted-req", "")
    return DecodeLine(
        running=int(running),
        queued=int(queued) if queued.isdecimal() else None,
        cuda_graph=None if graph is None else graph == "True",
        throughput=_number(fields.get("gen throughput (token/s)", "")),
        retracted=int(retracted) if retracted.isdecimal() else None,
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
