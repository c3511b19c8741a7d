"""The first line of a report: what a reader must know before the first number."""

from __future__ import annotations

from collections.abc import Sequence

from kit.report.escape import text
from kit.verdict import Content, Heading

__all__ = ["flag_line", "flag_words", "kind_of_prompt"]

_MEANING = {
    Heading.SIMULATED: "every number comes from the built-in simulator, not from a model on a GPU",
    Heading.IMPORTED: "the facts were recorded outside this kit; it only judged them",
    Heading.ATTACHED: "the servers were started by someone else; their set-up was read, not controlled",
    Heading.ON_CPU: "speeds say nothing about GPUs",
    Heading.PARTIAL: "less was measured than the spec asks for",
    Heading.NOT_PINNED: "a model, image or engine version was not fixed in the spec",
    Heading.NOT_PRE_REGISTERED: "nothing proves that the rules were fixed before the first request",
    Heading.SYNTHETIC_CONTENT: "some prompts are random or repeated text, good for the shape of a load alone",
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


def kind_of_prompt(name: str, content: Content) -> str:
    """The name of a class, marked where its text is no natural one."""
    return f"{text(name)} (synthetic content)" if name in content.synthetic else text(name)
