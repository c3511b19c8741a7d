"""Results of the self-test as lines for a terminal and as the page that is committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kit.format import SHARE, Reading, sentence
from kit.selftest.cases import CASES
from kit.selftest.replicate import DECISIVE, Result

__all__ = ["calibration_page", "result_lines"]

_HEAD = """# Calibration

Made by `make calibrate` (seed {seed}, {replications} replications); edits are lost. Each replication is a whole run in
virtual time: the stand-in's engine serves every cell of the plan, the records go through a run file, and the verdict is
judged like that of a measured run. The world is known exactly, so a line counts in how many runs the verdict was right.

A share must lie in its band; worlds with fewer than {decisive} runs must not refute it. In brackets are the 95 %
Clopper-Pearson limits of the share.
"""


def result_lines(results: Iterable[Result]) -> Iterable[str]:
    """One line a result."""
    for one in results:
        yield f"{'ok  ' if one.kept else 'MISS'}  {one.case:<10} {one.claim:<22} {_share(one)} of {one.runs}"


def calibration_page(results: Sequence[Result], *, seed: int, replications: int) -> str:
    """The page as Markdown."""
    parts = [_HEAD.format(seed=seed, replications=replications, decisive=DECISIVE)]
    for case in CASES:
        mine = [one for one in results if one.case == case.name]
        if mine:
            last = seed + max(one.runs for one in mine) - 1
            parts.append(f"## {case.name}\n\n{case.about[0].upper()}{case.about[1:]}. Seeds {seed} to {last}.\n")
            parts.append(_table(mine))
    return "\n".join(parts)


def _table(results: Sequence[Result]) -> str:
    rows = ["| claim | runs | share [95 %] | band | kept |", "| --- | ---: | ---: | ---: | --- |"]
    for one in results:
        band = f"{100 * one.band.lowest:g} to {100 * one.band.highest:g} %"
        rows.append(f"| {one.band.meaning} | {one.runs} | {_share(one)} | {band} | {'yes' if one.kept else '**no**'} |")
    return "\n".join([*rows, ""])


def _share(one: Result) -> str:
    if one.share is None or one.limits is None:
        return "no run bears on it"
    return sentence(Reading(one.share, *one.limits), unit=SHARE)
