"""Lines of a log that point to a cause: the fatal ones, and those of a server that lives but is not as asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.diagnosis.causes import Cause
from kit.diagnosis.log import Failure, Line, Origin, Raised
from kit.diagnosis.signatures import CONSEQUENCES, EXCEPTIONS, LINES, match

__all__ = ["Finding", "degraded", "fatal", "handled", "of_request"]

_EXCERPT_LINES = 12

# What the last of these says above an out-of-memory error is what the memory was wanted for.
_PHASES: tuple[tuple[tuple[str, ...], Cause], ...] = (
    (("load weight begin",), Cause.GPU_MEMORY_WEIGHTS),
    (("load weight end",), Cause.GPU_MEMORY_KV_POOL),
    (("capture", "graph"), Cause.GPU_MEMORY_GRAPHS),
    (("capturing batches",), Cause.GPU_MEMORY_GRAPHS),
    (("adaptive runtime state",), Cause.GPU_MEMORY_GRAPHS),
    (("fired up and ready",), Cause.GPU_MEMORY_SERVING),
    (("decode batch",), Cause.GPU_MEMORY_SERVING),
    (("prefill batch",), Cause.GPU_MEMORY_SERVING),
)

_READY = "The server is fired up and ready to roll"

# `accept len` counts the token that the target itself gives, so 1.00 is nothing accepted.
_ACCEPT_LENGTH = re.compile(r"^.*Decode batch.*\baccept len: (\d+\.\d+)")
_FEWEST_BATCHES = 3

# Lines that hold every word there is, or report what SGLang does without.
_NOISE = ("server_args", "Ignore import error", "Pyspy")


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with the line that shows it; `excerpt` is the error block around it."""

    cause: Cause
    line: int
    evidence: str
    detail: str = ""
    excerpt: tuple[str, ...] = ()


def fatal(lines: Sequence[Line], found: Sequence[Failure]) -> Finding | None:
    """The first thing in the log that ended a process; consequences of other failures do not count."""
    # Whatever was logged before the server came up did not end it.
    start = max((line.number for line in lines if _READY in line.text), default=0)
    raised = (_of_failure(failure, lines) for failure in found if failure.first > start and _ends_process(failure))
    said = (_of_line(line) for line in _uncovered(lines[start:], found))
    firsts = [next(raised, None), next(filter(None, said), None)]
    return min(filter(None, firsts), key=lambda finding: finding.line, default=None)


def handled(lines: Sequence[Line], found: Sequence[Failure]) -> Finding | None:
    """The first exception that SGLang reported and went on after; it counts only when nothing fatal was found."""
    caught = (failure for failure in found if failure.origin is Origin.HANDLED and not _is_consequence(failure))
    return next((_of_failure(failure, lines) for failure in caught), None)


def degraded(lines: Sequence[Line], found: Sequence[Failure]) -> Iterator[Finding]:
    """What makes a living server other than asked for: failed plugins, adaptive off, failed requests."""
    for failure in found:
        if failure.origin is Origin.PLUGIN:
            yield Finding(
                Cause.PLUGIN_FAILED,
                failure.line,
                failure.exception or failure.header,
                failure.header,
                _excerpt(failure, lines),
            )
    for line in lines:
        if "speculative_adaptive disabled" in line.text or "adaptive speculation off" in line.text:
            yield Finding(Cause.ADAPTIVE_OFF, line.number, line.text, _after(line.text, "disabled: ", "reason: "))
    yield from _dead_draft(lines)
    for failure in found:
        if _is_request(failure):
            yield of_request(failure, lines)


def _dead_draft(lines: Sequence[Line]) -> Iterator[Finding]:
    """Acceptance length 1.00 in every logged batch. The rate says nothing: its floor is 0.00 or 1 / draft tokens,
    depending on the version. A controller that may draft nothing logs 1.00 as well."""
    lengths = [(line, found[1]) for line in lines if (found := _ACCEPT_LENGTH.search(line.text))]
    adaptive = any("AdaptiveSpeculativeParams" in line.text for line in lines)
    if len(lengths) >= _FEWEST_BATCHES and not adaptive and {length for _, length in lengths} == {"1.00"}:
        first, number = lengths[0][0], len(lengths)
        yield Finding(Cause.DEAD_DRAFT, first.number, first.text, f"accept len 1.00 in {number} of {number} batches")


def _ends_process(failure: Failure) -> bool:
    return failure.origin is Origin.PROCESS and not _is_consequence(failure) and not _is_request(failure)


def _is_request(failure: Failure) -> bool:
    if failure.origin is Origin.REQUEST:
        return True
    # A tool that kept only the exception line of a failed request lost its header.
    return not failure.header and "Unexpected keyword argument" in failure.exception


def _is_consequence(failure: Failure) -> bool:
    return any(sentence in failure.exception.lower() for sentence in CONSEQUENCES)


def _of_failure(failure: Failure, lines: Sequence[Line]) -> Finding:
    """The first exception of the chain that has a known cause, else the first one there is."""
    excerpt = _excerpt(failure, lines)
    for raised in failure.chain:
        found = match(_text(raised), EXCEPTIONS)
        if found is not None:
            cause = _phase(lines, failure) if found.cause is Cause.GPU_MEMORY else found.cause
            return Finding(cause, raised.line, _evidence(raised), found.detail, excerpt)
    if failure.chain:
        first = failure.chain[0]
        return Finding(Cause.UNKNOWN, first.line, _evidence(first), _evidence(first), excerpt)
    return Finding(Cause.UNKNOWN, failure.first, failure.header, "its traceback is cut in the log", excerpt)


def of_request(failure: Failure, lines: Sequence[Line]) -> Finding:
    """What a failed request of a living server raised."""
    found = match(failure.exception, EXCEPTIONS)
    detail = found.detail if found is not None and found.cause is Cause.REQUEST_FAILED else failure.exception
    return Finding(
        Cause.REQUEST_FAILED, failure.line, failure.exception or failure.header, detail, _excerpt(failure, lines)
    )


def _of_line(line: Line) -> Finding | None:
    found = match(line.text, LINES)
    return Finding(found.cause, line.number, line.text, found.detail, (line.text,)) if found is not None else None


def _uncovered(lines: Sequence[Line], found: Sequence[Failure]) -> Iterator[Line]:
    """Lines outside every failure block that may mean something by themselves."""
    covered = {number for failure in found for number in range(failure.first, failure.last + 1)}
    for line in lines:
        if line.number not in covered and not line.text.startswith(_NOISE):
            yield line


def _phase(lines: Sequence[Line], failure: Failure) -> Cause:
    if any("capture" in raised.message.lower() and "graph" in raised.message.lower() for raised in failure.chain):
        return Cause.GPU_MEMORY_GRAPHS
    for line in reversed(lines[: failure.first]):
        lower = line.text.lower()
        for needles, cause in _PHASES:
            if not line.text.startswith(_NOISE) and all(needle in lower for needle in needles):
                return cause
    return Cause.GPU_MEMORY


def _text(raised: Raised) -> str:
    return f"{raised.type}: {raised.message}"


def _evidence(raised: Raised) -> str:
    return _text(raised).partition("\n")[0]


def _excerpt(failure: Failure, lines: Sequence[Line]) -> tuple[str, ...]:
    """What introduces the block, its first lines and its last ones, which name the exception."""
    block = [line.text for line in lines[failure.first - 1 : failure.last]]
    if failure.header and failure.header not in block[0]:
        block.insert(0, failure.header)
    if len(block) > _EXCERPT_LINES:
        block = [*block[:3], "...", *block[4 - _EXCERPT_LINES :]]
    return tuple(block)


def _after(text: str, *marks: str) -> str:
    for mark in marks:
        if mark in text:
            return text.partition(mark)[2]
    return ""
