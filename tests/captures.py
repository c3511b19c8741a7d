"""Where the recorded captures lie, and their facts, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kit.importers.capture import import_capture
from kit.records import RunFacts

__all__ = ["CAPTURES", "CPU", "H200", "facts_of"]

CAPTURES = Path(__file__).parent / "data" / "captures"
H200, CPU = "h200-smollm2-triton", "cpu-smollm2-eagle3"


@cache
def facts_of(name: str) -> RunFacts:
    """The facts of a recorded capture; frozen, so tests may share them."""
    return import_capture(CAPTURES / name)
