"""`speckit selftest --load`: tries the load generator on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from kit.errors import SpeckitError
from kit.load.selfcheck import LoadCheck, check_load

__all__ = ["prove_load"]


def prove_load(levels: Sequence[int]) -> None:
    """Print what the generator reaches at every level; raises SpeckitError where it falls short."""
    bad = []
    for check in check_load(levels=levels):
        click.echo("\n".join(_lines(check)))
        bad += [f"{check.streams} {check.pattern.value}"] if check.misses else []
    if bad:
        raise SpeckitError(
            f"the load generator falls short at {', '.join(bad)} streams; free a core, or measure fewer at once"
        )


def _lines(check: LoadCheck) -> Iterator[str]:
    figures = check.figures
    yield (
        f"{check.streams} streams, {check.pattern.value}: {figures.fraction_of_ideal:.1%} of the ideal rate, "
        f"{figures.cpu_ms_per_request:.2f} ms of CPU a request, TTFT error {figures.ttft_error_ms:.2f} ms "
        f"(p99 {figures.ttft_error_p99_ms:.2f}); {figures.requests} requests in {check.windows} windows"
    )
    for miss in check.misses:
        yield f"  falls short: {miss}"
