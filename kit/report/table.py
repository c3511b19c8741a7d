"""Markdown tables of ready strings. A cell without a number points to a note below, so that rows stay short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, product
from string import ascii_lowercase

from kit.report.escape import prose

__all__ = ["Entry", "table"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell in Markdown; `reason` says why it, or its interval, is missing."""

    text: str
    reason: str | None = None


Cell = str | Entry


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, align: str) -> str:
    """A padded table and its notes. `align` has one letter a column, l or r. ValueError when widths disagree."""
    for row in (header, align, *rows):
        if len(row) != len(header):
            raise ValueError(f"a row of {len(row)} cells does not fit {len(header)} columns: {row!r}")
    letters = _letters(rows)
    texts = [tuple(header), *(tuple(_marked(cell, letters) for cell in row) for row in rows)]
    widths = [max(3, *map(len, column)) for column in zip(*texts, strict=True)]
    head, *body = (_line(row, widths, align) for row in texts)
    rule = "|" + "|".join(_rule(width, side) for width, side in zip(widths, align, strict=True)) + "|"
    notes = [f"- ({letter}) {prose(reason)}" for reason, letter in letters.items()]
    return "\n".join([head, rule, *body, *(["", *notes] if notes else [])])


def _letters(rows: Iterable[Sequence[Cell]]) -> dict[str, str]:
    """Every distinct reason, in reading order, with the letter that stands for it."""
    reasons = dict.fromkeys(cell.reason for row in rows for cell in row if isinstance(cell, Entry) and cell.reason)
    return dict(zip(reasons, _names(), strict=False))


def _names() -> Iterable[str]:
    """a, b, ... z, aa, ab, ..."""
    for length in count(1):
        yield from ("".join(letters) for letters in product(ascii_lowercase, repeat=length))


def _marked(cell: Cell, letters: dict[str, str]) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({letters[cell.reason]})" if cell.reason else cell.text


def _line(row: Sequence[str], widths: Sequence[int], align: str) -> str:
    cells = (
        cell.rjust(width) if side == "r" else cell.ljust(width)
        for cell, width, side in zip(row, widths, align, strict=True)
    )
    return "| " + " | ".join(cells) + " |"


def _rule(width: int, side: str) -> str:
    return "-" * (width + 1) + ":" if side == "r" else "-" * (width + 2)
