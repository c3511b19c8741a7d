"""The command that holds two runs against each other."""

from __future__ import annotations

from pathlib import Path

import click

from kit.cli.options import json_option
from kit.compare import Factor
from kit.pipeline import compared
from kit.report import comparison_json, render_comparison

__all__ = ["compare_runs"]


@click.command("compare")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--factor",
    type=click.Choice([factor.value for factor in Factor]),
    required=True,
    help="The one thing that the runs may differ in.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the text (or the JSON) here too.")
@json_option
def compare_runs(first: Path, second: Path, factor: str, out: Path | None, as_json: bool) -> None:
    """Hold the run file SECOND against FIRST: ratios with intervals, or the fields that forbid it.

    \b
    speckit compare results/triton.duckdb results/flashinfer.duckdb --factor backend
    """
    comparison = compared(first, second, factor=Factor(factor))
    document = comparison_json(comparison) if as_json else render_comparison(comparison)
    if out is not None:
        out.write_text(document, encoding="utf-8", newline="\n")
    click.echo(document, nl=False)
