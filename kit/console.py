"""The one voice on stderr: a progress bar where a terminal watches, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

__all__ = ["Progress", "progress", "say"]

_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(slots=True)
class Progress:
    """Where a run stands. Without a terminal every call is silent."""

    _bar: tuple[RichProgress, TaskID] | None = None

    def step(self, what: str) -> None:
        """Now doing `what`: an arm and a concurrency."""
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, description=escape(what))

    def advance(self) -> None:
        """One more request has ended."""
        if self._bar is not None:
            bar, task = self._bar
            bar.advance(task)


@contextmanager
def progress(total: int, *, wanted: bool = True) -> Iterator[Progress]:
    """A bar over `total` requests while the block runs, if `wanted` and stderr is a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield Progress()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("requests"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=_console, transient=True) as bar:
        yield Progress((bar, bar.add_task("starting", total=total)))


def say(message: str) -> None:
    """One line on stderr; markup in it is shown, not obeyed."""
    _console.print(escape(message))
