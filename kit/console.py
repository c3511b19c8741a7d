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

__all__ = ["Progress", "progress"]

_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(slots=True)
class Progress:
    """How a run goes: a bar on a terminal, and plain lines everywhere."""

    _bar: RichProgress | None = None
    _task: TaskID | None = None

    def expect(self, requests: int) -> None:
        """So many requests will be sent."""
        if self._bar is not None:
            self._task = self._bar.add_task("starting", total=requests)

    def step(self, what: str) -> None:
        """Now doing `what`: an arm and a concurrency."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=escape(what))

    def advance(self) -> None:
        """One more request has ended."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)

    def say(self, message: str) -> None:
        """One line on stderr; markup in it is shown, not obeyed."""
        _console.print(escape(message))


@contextmanager
def progress(*, wanted: bool = True) -> Iterator[Progress]:
    """Progress while the block runs, with a bar if `wanted` and stderr is a terminal."""
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
        yield Progress(bar)
