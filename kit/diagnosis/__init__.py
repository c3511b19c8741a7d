"""From a server's log and exit status to the root cause, the line that shows it, and the next step.

The last line of a log is rarely the reason: SGLang answers an exception in a child by killing its whole
process tree, itself included, which looks from outside like an out-of-memory kill, and sometimes exits with
0. So the first exception that ended a process counts, and a signal alone is never read as a lack of memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Protocol

from kit.diagnosis.adaptive import DepthLog, depth_log
from kit.diagnosis.causes import REMEDIES, Cause
from kit.diagnosis.exits import engine_word, from_exit_status, status_note
from kit.diagnosis.findings import Finding, degraded, fatal, handled, of_request
from kit.diagnosis.log import Line, Origin, failures, read

__all__ = ["Cause", "DepthLog", "Diagnosis", "Names", "depth_log", "diagnose", "diagnose_requests"]

_SIGTERM = "SIGTERM received"
_TAIL_LINES = 5

# Of what makes a living server other than asked for, the first of these is the diagnosis.
_PRECEDENCE = (Cause.PLUGIN_FAILED, Cause.ADAPTIVE_OFF, Cause.DEAD_DRAFT, Cause.REQUEST_FAILED)

# Names that other servers use for SGLang's sampling parameters.
_ELSEWHERE = {"seed": "sampling_seed", "max_tokens": "max_new_tokens", "max_completion_tokens": "max_new_tokens"}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What ended or degraded a server.

    `title` is one line with the values that were found, `evidence` the log line it rests on, `line` that line's
    1-based number (None: the exit status alone) and `time` the last time the log gave up to it; `advice` is the
    next step, `contributing` what else in the log or the exit status bears on it, `excerpt` the error block,
    shortened.
    """

    cause: Cause
    title: str
    evidence: str
    line: int | None
    time: str | None
    advice: str
    contributing: tuple[str, ...] = ()
    excerpt: tuple[str, ...] = ()


class Names(Protocol):
    """What a version of SGLang calls its options and sampling parameters; `kit.contract` knows it."""

    @property
    def flags(self) -> Collection[str]:
        """Option names."""

    @property
    def sampling_keys(self) -> Collection[str]:
        """Sampling parameters."""


def diagnose(
    log_text: str,
    *,
    exit_code: int | None = None,
    oom_killed: bool | None = None,
    names: Names | None = None,
) -> Diagnosis:
    """Root cause of a server's end, or what is wrong with a server that lives.

    Args:
        log_text: the whole log, standard output and error together, in the order of writing.
        exit_code: as Python reports it (-9) or as a shell does (137); None while the server runs.
        oom_killed: what the container engine says about the kernel's OOM killer; None takes its word from the log,
            where the docker runtime leaves it.
        names: what this SGLang calls things, for a suggestion when a name is unknown to it.
    """
    lines = read(log_text)
    oom_killed = engine_word(lines) if oom_killed is None else oom_killed
    stop = _stop(lines)
    served = lines[: stop.number] if stop is not None else lines
    found = list(failures(served))
    notes = sorted(degraded(served, found), key=lambda note: _PRECEDENCE.index(note.cause))
    root = fatal(served, found)
    if root is None or (root.cause is Cause.UNKNOWN and oom_killed):
        ended = from_exit_status(lines, exit_code=exit_code, oom_killed=oom_killed, stopped=stop is not None)
        root = ended or root
        if root is not None and root.cause is Cause.UNKNOWN:
            root = handled(served, found) or root
    root = root or (notes[0] if notes else Finding(Cause.NONE, 0, ""))
    if root.cause is Cause.UNKNOWN and not root.excerpt:
        root = replace(root, excerpt=tuple(line.text for line in lines if line.text.strip())[-_TAIL_LINES:])
    return _diagnosis(
        root,
        time=_time(lines, root.line),
        contributing=_contributing(root, notes, lines, exit_code=exit_code, oom_killed=oom_killed),
        suggestion=_suggestion(root, names.flags if names else (), names.sampling_keys if names else ()),
    )


def diagnose_requests(
    log_text: str, *, after: int, upto: int, sampling_keys: Collection[str] = ()
) -> tuple[Diagnosis, ...]:
    """Each request that failed on a living server between two lines of its log, in order: what it raised and where.

    Args:
        log_text: the whole log so far.
        after: number of lines that were there before the requests were sent.
        upto: number of lines that were there after the last answer.
        sampling_keys: sampling parameters of this SGLang, for a suggestion when one is unknown.
    """
    lines = read(log_text)[:upto]
    raised = [one for one in failures(lines) if one.origin is Origin.REQUEST and one.first > after]
    return tuple(
        _diagnosis(
            finding,
            time=failure.time,
            contributing=(),
            suggestion=_suggestion(finding, (), sampling_keys),
        )
        for failure, finding in ((one, of_request(one, lines)) for one in raised)
    )


def _stop(lines: Sequence[Line]) -> Line | None:
    """Where somebody asked the server to stop; what follows is its tear-down."""
    return next((line for line in lines if line.text.startswith(_SIGTERM)), None)


def _time(lines: Sequence[Line], number: int) -> str | None:
    return next((line.time for line in reversed(lines[:number]) if line.time is not None), None)


def _diagnosis(root: Finding, *, time: str | None, contributing: tuple[str, ...], suggestion: str) -> Diagnosis:
    remedy = REMEDIES[root.cause]
    return Diagnosis(
        cause=root.cause,
        title=f"{remedy.heading}: {root.detail}" if root.detail else remedy.heading,
        evidence=root.evidence,
        line=root.line or None,
        time=time,
        advice=f"{suggestion}{remedy.advice}",
        contributing=contributing,
        excerpt=root.excerpt,
    )


def _contributing(
    root: Finding,
    notes: Sequence[Finding],
    lines: Sequence[Line],
    *,
    exit_code: int | None,
    oom_killed: bool | None,
) -> tuple[str, ...]:
    if root.cause is Cause.NONE:
        return ()
    told = list(_summed(notes, root))
    if root.cause in {Cause.WATCHDOG, Cause.NCCL_HANG}:
        told += [f"last batch logged at {batch.time} (line {batch.number})" for batch in _last_batch(lines, root.line)]
    if note := status_note(lines, exit_code):
        told.append(note)
    if oom_killed and root.cause is not Cause.HOST_MEMORY:
        told.append("the container engine also reports an OOM kill")
    return tuple(told)


def _summed(notes: Sequence[Finding], root: Finding) -> Iterator[str]:
    """One sentence for notes that say the same, with their number and the first one's line."""
    alike: dict[tuple[Cause, str], list[Finding]] = {}
    for note in notes:
        if note != root:
            alike.setdefault((note.cause, note.detail), []).append(note)
    for (cause, detail), same in alike.items():
        times = f", {len(same)} times" if len(same) > 1 else ""
        yield f"{REMEDIES[cause].heading} (line {same[0].line}{times}): {detail}"


def _last_batch(lines: Sequence[Line], before: int) -> list[Line]:
    batches = [line for line in lines[:before] if line.text.startswith(("Decode batch", "Prefill batch"))]
    return batches[-1:]


def _suggestion(root: Finding, flags: Collection[str], sampling_keys: Collection[str]) -> str:
    if root.cause is Cause.UNKNOWN_FLAG:
        near = [get_close_matches(name, flags, n=1) for name in re.findall(r"--[\w-]{1,80}", root.detail)]
        return "".join(f"did you mean {match}? " for matches in near for match in matches)
    if root.cause is Cause.REQUEST_FAILED and root.detail.endswith("is no sampling parameter"):
        key = root.detail.partition(" ")[0]
        name = _ELSEWHERE.get(key) or next(iter(get_close_matches(key, sampling_keys, n=1)), "")
        return f"SGLang calls {key} {name}; " if name else ""
    return ""
