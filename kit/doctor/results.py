"""What an examination finds: one line each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "State"]


class State(StrEnum):
    """How a finding bears on a run."""

    OK = "ok"
    WARNING = "warning"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what was found, with its value, and what to do unless all is well."""

    what: str
    state: State
    found: str
    fix: str = ""

    def line(self) -> str:
        """For a terminal."""
        return f"{self.state:<8} {self.what:<20} {self.found}{f': {self.fix}' if self.fix else ''}"
