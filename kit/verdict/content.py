"""Which content the speed of a run rests on: acceptance belongs to the text, and synthetic text carries no headline."""

from __future__ import annotations

from kit.records import SYNTHETIC, Phase, RunFacts
from kit.verdict.speed_results import Content

__all__ = ["content_of"]


def content_of(facts: RunFacts) -> Content:
    """Classes of the timed prompts, told apart by what the run declared before its first number."""
    timed = {one.repetition for one in facts.repetitions if one.phase is Phase.TIMED}
    classes = sorted({one.prompt_class for one in facts.requests if one.repetition in timed})
    synthetic = {_declared(text, classes) for text in facts.header.declarations if text.startswith(SYNTHETIC)}
    return Content(
        natural=tuple(name for name in classes if name not in synthetic),
        synthetic=tuple(name for name in classes if name in synthetic),
    )


def _declared(declaration: str, classes: list[str]) -> str | None:
    """The class that a declaration is about; of two names that fit, the longer one."""
    fits = (name for name in classes if declaration.startswith(f"{SYNTHETIC}{name} "))
    return max(fits, key=len, default=None)
