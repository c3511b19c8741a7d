"""Which prompts a draft suits: tokens a round by kind of prompt, where there are most rounds."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.analysis import Acceptance
from kit.format import RATIO, Reading, aligned
from kit.report.escape import clean
from kit.report.figures.picture import Picture
from kit.report.figures.style import Look, house_style, key_beside, looks, picture
from kit.verdict import Verdict

__all__ = ["classes_figure"]


def classes_figure(verdict: Verdict) -> Picture | None:
    """A row for each kind of prompt; None with fewer than two kinds."""
    rows = _rows(verdict.acceptance)
    names = sorted({part.prompt_class for row in rows for part in row.classes})
    if len(names) < 2:
        return None
    names.sort(key=lambda name: _mean(rows, name))
    styles = looks(verdict.what_ran.arms)
    with house_style():
        figure = Figure(figsize=(7.2, 1.6 + 0.36 * len(names)), layout="constrained")
        axes = figure.subplots()
        for position, row in enumerate(rows):
            _draw(axes, row, names, styles[row.arm], 0.13 * ((len(rows) - 1) / 2 - position))
        axes.set_yticks(range(len(names)), [clean(name, longest=28) for name in names])
        axes.set_title(f"Tokens a round by kind of prompt, {rows[0].concurrency} at once")
        axes.set_xlabel("Tokens a round (1: no draft kept)")
        axes.set_xlim(left=1.0)
        key_beside(axes)
        return picture(figure, _alt(rows, names))


def _rows(rows: Sequence[Acceptance]) -> list[Acceptance]:
    """The arms with classes at the concurrency that has most rounds."""
    known = [row for row in rows if row.classes]
    fullest = max(known, key=lambda row: row.rounds).concurrency if known else 0
    return [row for row in known if row.concurrency == fullest]


def _points(rows: Sequence[Acceptance], name: str) -> list[float]:
    parts = [part for row in rows for part in row.classes if part.prompt_class == name]
    return [part.acceptance_length.point for part in parts if part.acceptance_length.point is not None]


def _mean(rows: Sequence[Acceptance], name: str) -> float:
    found = _points(rows, name)
    return sum(found) / len(found) if found else 0.0


def _draw(axes: Axes, row: Acceptance, names: Sequence[str], look: Look, shift: float) -> None:
    axes.plot([], [], linestyle="none", marker=look.marker, color=look.colour, label=look.name)
    for part in row.classes:
        length, y = part.acceptance_length, names.index(part.prompt_class) + shift
        if length.point is not None:
            face = look.colour if length.interval else "white"
            axes.plot([length.point], [y], marker=look.marker, color=look.colour, markerfacecolor=face, markersize=5)
        if length.interval is not None:
            axes.plot([length.interval.lo, length.interval.hi], [y, y], color=look.colour, linewidth=1.1)


def _alt(rows: Sequence[Acceptance], names: Sequence[str]) -> str:
    parts = []
    for name in names:
        texts = aligned([Reading(point) for point in _points(rows, name)], unit=RATIO)
        parts.append(f"{name}: {', '.join(texts)}")
    arms = ", ".join(row.arm for row in rows)
    return f"Tokens a round by kind of prompt at {rows[0].concurrency} at once, for {arms}. {'; '.join(parts)}."
