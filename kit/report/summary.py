"""The answer on a terminal: flags, the sentence, and one row for each arm and concurrency. Plain text, no colour."""

from __future__ import annotations

from collections.abc import Sequence

from kit.checks import CellState
from kit.format import MILLISECONDS, RATIO, TOKENS_PER_SECOND, Reading, aligned
from kit.report.entries import counted, reading
from kit.report.escape import clean
from kit.report.flags import flag_words
from kit.report.measure import shown_measure
from kit.verdict import DoubtsSection, Verdict

__all__ = ["summary"]

MOST_ROWS = 12


def summary(verdict: Verdict) -> str:
    """Ten to twenty lines of plain text, the last without a newline; control characters of foreign text are gone."""
    lines = [flag_words(verdict.headings), "", clean(verdict.answer), ""]
    lines += [*_rows(verdict), ""] if verdict.speed.levels else []
    lines += [f"Gate: {clean(verdict.gate.sentence)}", f"Outputs: {_lossless(verdict)}", _doubts(verdict.doubts)]
    return "\n".join(lines)


def _rows(verdict: Verdict) -> list[str]:
    levels = sorted(verdict.speed.levels, key=lambda level: level.concurrency)
    words = {(c.comparison.arm, c.comparison.concurrency): c for c in verdict.speed.comparisons}
    shown = levels[:MOST_ROWS]
    found = [words.get((level.arm, level.concurrency)) for level in shown]
    measure = shown_measure(verdict.speed)
    columns = [
        ["at once", *(str(level.concurrency) for level in shown)],
        ["arm", *(clean(level.arm, longest=24) for level in shown)],
        [measure.name, *aligned([reading(measure.throughput(level)) for level in shown], unit=TOKENS_PER_SECOND)],
        ["TPOT ms", *aligned([reading(level.tpot_s) for level in shown], unit=MILLISECONDS)],
        ["ratio", *_ratios([reading(word.comparison.ratio) if word else None for word in found])],
        ["word", *(word.word.value if word else "" for word in found)],
    ]
    rest = len(levels) - len(shown)
    more = [f"and {counted(rest, 'row')} more in the report"] if rest > 0 else []
    return _padded(columns) + more


def _ratios(readings: Sequence[Reading | None]) -> list[str]:
    """Aligned ratios; nothing where an arm is the baseline itself."""
    present = iter(aligned([one for one in readings if one is not None], unit=RATIO))
    return ["" if one is None else next(present) for one in readings]


def _padded(columns: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _lossless(verdict: Verdict) -> str:
    words = dict.fromkeys((row.outputs.arm, row.word.value) for row in verdict.losslessness.rows)
    return "; ".join(f"{clean(arm)} {word}" for arm, word in words) or "not compared"


def _doubts(section: DoubtsSection) -> str:
    valid = sum(cell.state is CellState.VALID for cell in section.cells)
    found = counted(len(section.doubts), "doubt")
    return f"Cells: {valid} of {counted(len(section.cells), 'cell')} valid, {found}"
