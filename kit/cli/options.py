"""Options that several commands share, and how they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from kit.plan import Selection

__all__ = ["json_option", "print_json", "selection_options", "spec_argument"]

Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
spec_argument = click.argument("spec", type=click.Path(path_type=Path))


class _Listed(click.ParamType[tuple[Any, ...]]):
    """A comma-separated list."""

    name = "LIST"

    def __init__(self, of: type) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        try:
            return tuple(self._of(part.strip()) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a comma-separated list of whole numbers", param, ctx)


def selection_options(function: Function) -> Function:
    """`--arms`, `--levels` and `--blocks`: run a part of the spec, which marks the run PARTIAL."""
    for option in (
        click.option("--blocks", type=click.IntRange(min=1), help="Only the first N blocks."),
        click.option("--levels", type=_Listed(int), help="Only these concurrencies, for instance 1,8."),
        click.option("--arms", type=_Listed(str), help="Only these arms, for instance baseline,k3."),
    ):
        function = option(function)
    return function


def selected(arms: tuple[str, ...] | None, levels: tuple[int, ...] | None, blocks: int | None) -> Selection:
    """The selection that the options describe."""
    return Selection(arms=arms, levels=levels, blocks=blocks)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
