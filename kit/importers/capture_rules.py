"""What a capture breaks of the kit's own rules, stated before anybody sees its numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from kit.analysis import FlagClass, flag_differences
from kit.importers.capture_rows import Row, arm_name
from kit.importers.capture_spec import ServerInfos
from kit.importers.server_log import LogSpan
from kit.spec import Spec

__all__ = ["declarations"]


def declarations(
    rows: Sequence[Row], *, infos: ServerInfos, spans: Mapping[str, LogSpan], spec: Spec
) -> tuple[str, ...]:
    """One sentence a broken rule, in the order of their weight."""
    return (
        "One launch an arm: launches differ by more than the arms may, so no interval and no word about speed.",
        "Not pre-registered: the spec was read back from the servers after the run.",
        *_clocks(rows),
        *_flags(infos, spec),
        *_unseen(infos),
        *_overlaps(spans),
        "Prompts and sampling parameters are not in the capture: prompts are told apart by index, class and length, "
        "and greedy decoding is assumed.",
    )


def _clocks(rows: Sequence[Row]) -> Iterator[str]:
    if all(row.ended_s is None for row in rows):
        yield "No client times: throughput and latencies cannot be computed."
    yield "No chunk times: no steady-state window, no time to first token, no time per output token."


def _flags(infos: ServerInfos, spec: Spec) -> Iterator[str]:
    named = {arm_name(label): info for label, info in infos.items()}
    for flag, group in itertools.groupby(
        sorted(
            (d for d in flag_differences(spec, named) if d.flag_class is FlagClass.UNFAIR),
            key=lambda d: (d.flag, d.arm),
        ),
        key=lambda difference: difference.flag,
    ):
        differences = list(group)
        arms = ", ".join(difference.arm for difference in differences)
        first = differences[0]
        yield f"Arms differ in {flag}: {first.arm_value} on {arms}, {first.baseline_value} on {first.baseline}."


def _unseen(infos: ServerInfos) -> Iterator[str]:
    missing = [arm_name(label) for label, info in infos.items() if info is None]
    if missing:
        yield f"No server_info for {', '.join(missing)}: their flags are unknown and were taken from the other arms."


def _overlaps(spans: Mapping[str, LogSpan]) -> Iterator[str]:
    for one, other in itertools.combinations(spans, 2):
        if spans[one].overlaps(spans[other]):
            yield f"The servers of {arm_name(one)} and {arm_name(other)} were up at the same time on one host."
