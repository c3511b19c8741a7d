"""The command that holds the kit against worlds whose truth is known."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kit.errors import SpeckitError
from kit.selftest import calibration_page, result_lines, run_selftest

__all__ = ["selftest"]


@click.command()
@click.option("--replications", type=click.IntRange(min=1), default=20, show_default=True, help="Runs of each world.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the first run.")
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes; default: all cores.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the table as Markdown.")
def selftest(replications: int, seed: int, jobs: int, out: Path | None) -> None:
    """Judge runs of simulated worlds whose truth is known, and fail unless the verdicts are right often enough.

    \b
    speckit selftest                                           two minutes on two cores
    speckit selftest --replications 500 --out docs/calibration.md
    """
    results = []
    for result in run_selftest(replications=replications, seed=seed, jobs=jobs):
        results.append(result)
        for line in result_lines([result]):
            click.echo(line)
    if out is not None:
        out.write_text(calibration_page(results, seed=seed, replications=replications), encoding="utf-8")
    missed = [f"{one.case}: {one.claim}" for one in results if not one.kept]
    if missed:
        raise SpeckitError(
            f"{len(missed)} of {len(results)} claims were missed ({'; '.join(missed)}); find out what changed in the "
            "statistics or the engine before trusting a verdict"
        )
