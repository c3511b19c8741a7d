"""Losslessness: does speculation change what the model writes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import Losslessness
from kit.format import PERCENT, count
from kit.report.entries import points
from kit.report.escape import code
from kit.report.table import Entry, table
from kit.verdict import LosslessnessSection, LosslessRow, LosslessWord

__all__ = ["LosslessView", "lossless_view"]

MEANING = {
    LosslessWord.LOSSLESS: "every compared prompt gave the same tokens",
    LosslessWord.BENIGN_DIVERGENCE: (
        "some prompts differ, each at a near-tie between two tokens, and no more often than the baseline differs "
        "from itself"
    ),
    LosslessWord.UNRESOLVED: "some prompts differ, and what was recorded cannot tell a near-tie from a fault",
    LosslessWord.VIOLATED: "at least one difference is too large for rounding",
}

_SAMPLED = (
    "The run sampled at a temperature above 0, so outputs differ by chance and cannot be compared token by token."
)


@dataclass(frozen=True, slots=True)
class LosslessView:
    """Strings of the section; `meanings` explains the words that occur."""

    table: str
    meanings: tuple[str, ...]
    control_table: str
    sampling: str


def lossless_view(section: LosslessnessSection) -> LosslessView:
    """The section's strings."""
    occurring = {row.word for row in section.rows}
    return LosslessView(
        table=_table(section.rows) if section.rows else "",
        meanings=tuple(f"**{word.value}**: {meaning}" for word, meaning in MEANING.items() if word in occurring),
        control_table=_control_table(section.aa_tokens) if section.aa_tokens else "",
        sampling="" if section.greedy else _SAMPLED,
    )


def _table(rows: Sequence[LosslessRow]) -> str:
    uppers = points([row.hard_upper for row in rows], unit=PERCENT)
    cells = [
        (
            code(row.outputs.arm),
            str(row.outputs.concurrency),
            count(row.outputs.prompts),
            count(row.outputs.equal_ids),
            count(row.outputs.equal_lengths),
            count(row.hard),
            count(row.unresolved),
            upper,
            Entry(f"**{row.word.value}**", None if row.word is LosslessWord.LOSSLESS else row.reason),
        )
        for row, upper in zip(rows, uppers, strict=True)
    ]
    header = (
        "Arm",
        "Requests at once",
        "Prompts",
        "Same tokens",
        "Same length",
        "Hard",
        "Unresolved",
        "Hard at most, %",
        "Word",
    )
    return table(header, cells, align="lrrrrrrrl")


def _control_table(rows: Sequence[Losslessness]) -> str:
    cells = [
        (
            code(row.arm),
            f"{row.concurrency} against {row.reference_concurrency}",
            f"{_list(row.launches)} against {_list(row.reference_launches)}",
            count(row.prompts),
            count(row.equal_ids),
            count(row.equal_lengths),
        )
        for row in rows
    ]
    header = ("Baseline", "Requests at once", "Launches", "Prompts", "Same tokens", "Same length")
    return table(header, cells, align="lllrrr")


def _list(launches: Sequence[int]) -> str:
    return ", ".join(map(str, launches))
