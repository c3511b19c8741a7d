"""Every error the kit raises, with the exit code that the command line turns it into.

    SpeckitError                 1   failed while running
    ├── SpecError                2   the spec, an argument or an input file is wrong
    │   └── ComparisonRefused    2   two runs differ in more than the factor they are compared in
    ├── RunFileError             1   a run file cannot be read or written
    ├── ImportFileError          1   a capture or foreign file is broken or incomplete
    ├── ServerError              1   a server did not start, died, or is not the one asked for
    │   └── TraceError           1   a server's iteration trace is missing, lossy or unreadable: its launch is void
    ├── StatsError               1   a statistic was asked of numbers that cannot be (kit/stats/errors.py)
    ├── PrerequisiteError        4   Docker, a GPU, an image or a model is missing
    └── Interrupted            130   stopped by the user; finished repetitions are kept

A message is one line: what happened, with which value, and what to do next. A refused comparison adds a line a field.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ComparisonRefused",
    "ImportFileError",
    "Interrupted",
    "PrerequisiteError",
    "RunFileError",
    "ServerError",
    "SpecError",
    "SpeckitError",
    "TraceError",
]


class SpeckitError(Exception):
    """Root of the tree; `exit_code` is what the process ends with."""

    exit_code = 1


class SpecError(SpeckitError):
    """A spec, an argument or a selection is wrong."""

    exit_code = 2


class ComparisonRefused(SpecError):
    """Two runs may not be compared; `fields` names what they differ in, one line each."""

    def __init__(self, message: str, fields: Sequence[str] = ()) -> None:
        super().__init__("\n  ".join([message, *fields]))
        self.fields = tuple(fields)


class RunFileError(SpeckitError):
    """A run file is missing, unreadable, newer than this kit, or held by another process."""


class ImportFileError(SpeckitError):
    """A file from outside the kit is incomplete or broken; nothing was written."""


class ServerError(SpeckitError):
    """A server did not come up, died, or answered as something other than what was launched."""


class TraceError(ServerError):
    """The iteration trace of a server is missing, has lost iterations or cannot be read; the launch is void."""


class PrerequisiteError(SpeckitError):
    """Something the host must provide is missing."""

    exit_code = 4


class Interrupted(SpeckitError):
    """The user stopped the run."""

    exit_code = 130
