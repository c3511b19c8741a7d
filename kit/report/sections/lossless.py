"""Losslessness: does speculation change what the model writes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.analysis import Losslessness
from kit.format import MISSING, PERCENT, SHARE, count, probability
from kit.report.entries import counted, points
from kit.report.escape import code
from kit.report.table import Entry, table
from kit.stats import LosslessWord
from kit.verdict import LosslessnessSection, LosslessRow

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
    tie: str
    past_the_end: str
    control_table: str
    sampling: str


def lossless_view(section: LosslessnessSection) -> LosslessView:
    """The section's strings."""
    occurring = {row.word for row in section.rows}
    return LosslessView(
        table=_table(section.rows) if section.rows else "",
        meanings=tuple(f"**{word.value}**: {meaning}" for word, meaning in MEANING.items() if word in occurring),
        tie=_tie(section.rows),
        past_the_end=_past_the_end(section.rows),
        control_table=_control_table(section.aa_tokens) if section.aa_tokens else "",
        sampling="" if section.greedy else _SAMPLED,
    )


def _tie(rows: Sequence[LosslessRow]) -> str:
    """The widest margin that counts as a tie; nothing where no margin was recorded."""
    known = {row.tau for row in rows if any(d.margin is not None for d in row.outputs.divergences)}
    return f" (log-probabilities more than {points([max(known)], unit=SHARE)[0]} apart)" if known else ""


def _past_the_end(rows: Sequence[LosslessRow]) -> str:
    """The finish-order defect of SGLang 0.5.15, by name, where it occurred."""
    prompts = sum(row.past_the_end for row in rows)
    if not prompts:
        return ""
    return (
        f"**Past the end**: in {counted(prompts, 'comparison')} the arm says all that the baseline says, its end of "
        "text included, and goes on to the length limit. SGLang 0.5.15 looks at the limit first when one round reaches "
        "both; that is a defect of when it stops, not of what it writes, and counts in no column of differences."
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
            f"{count(row.hard)}, {count(row.unresolved)}",
            upper,
            MISSING if row.p_excess is None else probability(row.p_excess),
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
        "Hard, unresolved",
        "Hard at most, %",
        "p (more than the baseline)",
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
