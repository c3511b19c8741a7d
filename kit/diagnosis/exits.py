"""What an exit status and the last words of a log say when no exception explains the end.

A number alone never becomes a lack of memory: SIGKILL is also what SGLang sends itself, what a person sends
and what a supervisor sends. Only the container engine's or the kernel's own word counts.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from kit.diagnosis.causes import Cause
from kit.diagnosis.findings import Finding
from kit.diagnosis.log import Line

__all__ = ["engine_word", "from_exit_status", "status_note"]

_CHILD_STATUS = re.compile(
    r"(?P<who>Subprocess \w{1,60}|Rank \d{1,5} scheduler|DataParallelController \d{1,9})"
    r".{0,80}?(?:exit code:? |terminated with )(?P<status>-?\d{1,4})"
)
_ENGINE = re.compile(r"^\[speckit\] the container ended with exit code -?\d{1,4}, OOMKilled (?P<oom>true|false)")
_LAST_LINES = 5
_SELF_KILL = ("kill_process_tree called", "SIGQUIT", "Received sigquit")
_ORDERLY = frozenset({0, -signal.SIGTERM, -signal.SIGINT})


def from_exit_status(
    lines: Sequence[Line], *, exit_code: int | None, oom_killed: bool | None, stopped: bool
) -> Finding | None:
    """A finding from the status of a child or of the server itself; None when neither tells of a failure.

    Args:
        lines: the whole log.
        exit_code: of the server, in Python's or the shell's convention; None while it runs.
        oom_killed: the container engine's answer.
        stopped: somebody asked the server to stop, so that a child's SIGTERM or SIGKILL is its end.
    """
    line, who, status = _child(lines)
    if oom_killed:
        return Finding(Cause.HOST_MEMORY, *_shown(line), "the container engine reports an OOM kill")
    if stopped:
        return None
    status = _signed(exit_code) if status is None else status
    if status is None or status in _ORDERLY:
        return _silent_end(lines) if status in {None, 0} else Finding(Cause.STOPPED, *_shown(line), _named(status))
    cause = _cause(status)
    if line is None and _last(lines, _SELF_KILL) is not None:
        return _silent_end(lines)
    denied = "; the container engine reports no OOM kill" if oom_killed is False and cause is Cause.KILLED else ""
    return Finding(cause, *_shown(line), f"{who} ended with {_named(status)}{denied}")


def engine_word(lines: Sequence[Line]) -> bool | None:
    """What the docker runtime wrote at the end of the log about the OOM killer; None where it wrote nothing."""
    said = [found for line in lines[-_LAST_LINES:] if (found := _ENGINE.search(line.text))]
    return said[-1]["oom"] == "true" if said else None


def status_note(lines: Sequence[Line], exit_code: int | None) -> str:
    """What to know about an exit status that follows a found error; empty when nothing."""
    status = _signed(exit_code)
    if status == 0:
        return "exit status 0 is no sign of success here: SGLang's tear-down ends with it"
    if status == -signal.SIGKILL and _last(lines, _SELF_KILL) is not None:
        return f"exit status {exit_code} is SGLang killing its own process tree, not the kernel or a person"
    return ""


def _child(lines: Sequence[Line]) -> tuple[Line | None, str, int | None]:
    """The first child reported dead, with its status; the server itself when none was."""
    for line in lines:
        found = _CHILD_STATUS.search(line.text)
        if found is not None:
            return line, found["who"], int(found["status"])
    killed = next((line for line in lines if line.text.strip() == "Killed"), None)
    return killed, "the server", -signal.SIGKILL if killed is not None else None


def _silent_end(lines: Sequence[Line]) -> Finding | None:
    """SGLang killed its tree because a child had failed, but the child's error is not in the log."""
    line = _last(lines, _SELF_KILL)
    if line is None:
        return None
    return Finding(
        Cause.UNKNOWN,
        *_shown(line),
        "SGLang killed its own process tree after a child failed, and the child's error is not in this log",
    )


def _last(lines: Sequence[Line], words: tuple[str, ...]) -> Line | None:
    return next((line for line in reversed(lines) if any(word in line.text for word in words)), None)


def _cause(status: int) -> Cause:
    if status == -signal.SIGKILL:
        return Cause.KILLED
    return Cause.NATIVE_CRASH if status < 0 else Cause.UNKNOWN


def _signed(exit_code: int | None) -> int | None:
    """Python's convention, in which death by signal is negative; a shell adds 128 instead."""
    if exit_code is not None and 128 < exit_code < 128 + signal.NSIG:
        return 128 - exit_code
    return exit_code


def _named(status: int) -> str:
    known = {member.value: member.name for member in signal.Signals}
    return f"{known[-status]} (exit status {status})" if -status in known else f"exit status {status}"


def _shown(line: Line | None) -> tuple[int, str]:
    return (line.number, line.text) if line is not None else (0, "")
