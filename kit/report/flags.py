"""The first line of a report: what a reader must know before the first number."""

from __future__ import annotations

from collections.abc import Sequence

from kit.verdict import Heading

__all__ = ["flag_line", "flag_words"]

_MEANING = {
    Heading.SIMULATED: "every number comes from the built-in simulator, not from a model on a GPU",
    Heading.IMPORTED: "the facts were recorded outside this kit; it only judged them",
    Heading.ATTACHED: "the servers were started by someone else; their set-up was read, not controlled",
    Heading.ON_CPU: "speeds say nothing about GPUs",
    Heading.PARTIAL: "less was measured than the spec asks for",
    Heading.NOT_PINNED: "a model, image or engine version was not fixed in the spec",
    Heading.NOT_PRE_REGISTERED: "nothing proves that the rules were fixed before the first request",
    Heading.GATE_FAILED: "acceptance measured at one draft length must not be carried over to another",
}
_CLEAN = "measured by this kit on the host named below, versions pinned, rules fixed before the first request"


def flag_line(headings: Sequence[Heading]) -> str:
    """Every flag with what it means, in one line of Markdown."""
    if not headings:
        return f"**NO FLAGS**: {_CLEAN}."
    return " · ".join(f"**{heading.value}**: {_MEANING[heading]}" for heading in headings) + "."


def flag_words(headings: Sequence[Heading]) -> str:
    """The flags alone, for a terminal."""
    return ", ".join(heading.value for heading in headings) or "NO FLAGS"
