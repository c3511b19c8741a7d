"""How many prompts of each class are drawn, and in which order they are sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from kit.errors import SpecError
from kit.spec import Workload

__all__ = ["by_block", "counts", "in_phases", "interleaved"]

Row = tuple[str, str, str]


class _Classed(Protocol):
    @property
    def prompt_class(self) -> str: ...


_T = TypeVar("_T", bound=_Classed)


def counts(workload: Workload, classes: Sequence[str], *, blocks: int) -> dict[str, int]:
    """Prompts to draw of each class. Raises SpecError when the classes do not fit the order that is asked for."""
    if workload.mix != "interleaved" and len(classes) < 2:
        raise SpecError(f"workload.mix: {workload.mix} needs two classes or more, and there is {len(classes)}")
    if workload.mix == "homogeneous":
        return _whole_blocks(workload, classes, blocks)
    if workload.quotas is None:
        return dict.fromkeys(classes, -(-workload.prompts // len(classes)))
    return _quotas(workload.quotas, workload.prompts)


def _whole_blocks(workload: Workload, classes: Sequence[str], blocks: int) -> dict[str, int]:
    if blocks % len(classes):
        raise SpecError(
            f"workload.mix: homogeneous sends one class a block, and {blocks} blocks are no multiple of "
            f"{len(classes)} classes: change design.blocks, or name fewer in workload.classes"
        )
    return dict.fromkeys(classes, workload.prompts // blocks * (blocks // len(classes)))


def _quotas(quotas: Mapping[str, float], prompts: int) -> dict[str, int]:
    """Counts as they are; shares by largest remainder, so that they add up."""
    if all(isinstance(value, int) for value in quotas.values()):
        return {name: int(value) for name, value in quotas.items()}
    found = {name: int(share * prompts) for name, share in quotas.items()}
    rest = sorted(quotas, key=lambda name: found[name] - quotas[name] * prompts)
    return {name: found[name] + (name in rest[: prompts - sum(found.values())]) for name in quotas}


def interleaved(drawn: Sequence[Sequence[Row]]) -> list[Row]:
    """Every class spread evenly over the whole, so that any window holds its share of each, give or take one."""
    places = ((at + 0.5) / len(rows) for rows in drawn for at in range(len(rows)))
    rows = [row for each in drawn for row in each]
    return [row for _, row in sorted(zip(places, rows, strict=True), key=lambda one: one[0])]


def by_block(drawn: Sequence[Sequence[Row]], *, blocks: int) -> list[Row]:
    """One class a block, in turns."""
    size = len(drawn[0]) // (blocks // len(drawn))
    return [
        row
        for block in range(blocks)
        for row in drawn[block % len(drawn)][block // len(drawn) * size : (block // len(drawn) + 1) * size]
    ]


def in_phases(prompts: Sequence[_T]) -> tuple[_T, ...]:
    """The same prompts, one class after the other, in the order of their first prompts."""
    order = list(dict.fromkeys(one.prompt_class for one in prompts))
    return tuple(sorted(prompts, key=lambda one: order.index(one.prompt_class)))
