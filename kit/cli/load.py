"""The command that tries the load generator on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from kit.cli.options import json_option, print_json
from kit.errors import SpeckitError
from kit.load.selfcheck import LEVELS, LoadCheck, check_load

__all__ = ["load_check"]


@click.command("load-check")
@click.option("--streams", type=click.IntRange(min=1), multiple=True, default=LEVELS, help="At once; repeatable.")
@click.option("--windows", type=click.IntRange(min=1), default=3, help="Windows of about 4 s; medians are printed.")
@json_option
def load_check(streams: tuple[int, ...], windows: int, as_json: bool) -> None:
    """Prove that the load generator is not the bottleneck here: rate, and arrival times against known ones.

    \b
    speckit load-check --streams 32 --windows 1
    """
    done = []
    for check in check_load(levels=streams, windows=windows):
        done.append(check)
        if not as_json:
            click.echo("\n".join(_lines(check)))
    if as_json:
        print_json({"schema_version": 1, "levels": [asdict(check) for check in done]})
    if bad := [check for check in done if check.misses]:
        where = ", ".join(f"{check.streams} {check.pattern.value}" for check in bad)
        raise SpeckitError(f"the load generator falls short at {where} streams; free a core, or measure fewer at once")


def _lines(check: LoadCheck) -> Iterator[str]:
    figures = check.figures
    yield (
        f"{check.streams} streams, {check.pattern.value}: {figures.fraction_of_ideal:.1%} of the ideal rate, "
        f"{figures.cpu_ms_per_request:.2f} ms of CPU a request, TTFT error {figures.ttft_error_ms:.2f} ms "
        f"(p99 {figures.ttft_error_p99_ms:.2f}); {figures.requests} requests in {check.windows} windows"
    )
    for miss in check.misses:
        yield f"  falls short: {miss}"
