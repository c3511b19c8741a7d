"""The command that holds the kit against worlds whose truth is known."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kit.cli.load import prove_load
from kit.errors import SpeckitError
from kit.load.selfcheck import LEVELS
from kit.selftest import calibration_page, result_lines, run_selftest

__all__ = ["selftest"]

DEFAULT_LEVELS = ",".join(map(str, LEVELS))


@click.command()
@click.option("--replications", type=click.IntRange(min=1), default=20, show_default=True, help="Runs of each world.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the first run.")
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Processes; default: all cores.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the table as Markdown.")
@click.option(
    "--load", is_flag=False, flag_value=DEFAULT_LEVELS, metavar="[N,N]", help="Prove the load generator instead."
)
def selftest(replications: int, seed: int, jobs: int, out: Path | None, load: str | None) -> None:
    """Judge runs of simulated worlds whose truth is known, and fail unless the verdicts are right often enough.

    \b
    speckit selftest                                           two minutes on two cores
    speckit selftest --replications 500 --out docs/calibration.md
    speckit selftest --load                                    rate and arrival times against known ones; a minute
    speckit selftest --load=32                                 at 32 streams alone
    """
    if load is not None:
        prove_load(_levels(load))
        return
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


def _levels(text: str) -> list[int]:
    """Streams at once. Raises click.BadParameter for anything but numbers above 0."""
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        levels = []
    if not levels or min(levels) < 1:
        raise click.BadParameter(f"{text!r} is no list of streams at once; give numbers, for instance --load=32,250")
    return levels
