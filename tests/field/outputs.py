"""Foreign tables of outputs as comparisons: what the analysis makes of records that hold the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kit.analysis import Divergence, Losslessness, Pairing
from kit.stats import cp_upper, first_divergence

__all__ = ["Answer", "Table", "answers", "asked_again", "compared", "control"]


@dataclass(frozen=True)
class Answer:
    """One output with the margins of the target's two likeliest tokens, empty where nobody recorded them."""

    prompt: str
    ids: tuple[int, ...]
    margins: tuple[float, ...]


Table = Mapping[str, Sequence[Sequence[Answer]]]
"""Repeats of each arm."""


def answers(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The answers of each arm, one list a repeat."""
    found: dict[str, dict[int, list[Answer]]] = {}
    for row in rows:
        one = Answer(str(row["prompt"]), tuple(row["output_ids"]), tuple(row.get("top2_margin", ())))
        found.setdefault(row["arm"], {}).setdefault(row.get("rep", 1), []).append(one)
    return {arm: [repeats[rep] for rep in sorted(repeats)] for arm, repeats in found.items()}


def compared(table: Table, arm: str, *, reference: str) -> Losslessness:
    """The arm's first repeat against the reference's."""
    return _pairs(arm, table[arm][0], reference, table[reference][0], pairing=Pairing.ARM)


def control(table: Table, arm: str) -> Losslessness:
    """The reference's first repeat against the later one that differs most from it."""
    first, *others = table[arm]
    found = [_pairs(arm, other, arm, first, pairing=Pairing.AA_TOKENS) for other in others]
    return max(found, key=lambda one: len(one.divergences))


def asked_again(outputs: Losslessness, *, spread: float) -> Losslessness:
    """The same after the reference's server prefilled what both had in common and found the margins as they were."""
    looked = tuple(replace(one, prefill_margin=one.margin) for one in outputs.divergences)
    return replace(outputs, divergences=looked, prefill_spread=spread, asked_again=20)


def _pairs(
    arm: str, mine: Sequence[Answer], reference: str, theirs: Sequence[Answer], *, pairing: Pairing
) -> Losslessness:
    other = {one.prompt: one for one in theirs}
    pairs = [(one, other[one.prompt]) for one in mine if one.prompt in other]
    found = [(one, two, first_divergence(np.array(two.ids), b=np.array(one.ids))) for one, two in pairs]
    parted = [(one, two, at) for one, two, at in found if at is not None]
    return Losslessness(
        pairing=pairing,
        arm=arm,
        concurrency=8,
        launches=(1,),
        reference_arm=reference,
        reference_concurrency=8,
        reference_launches=(0,),
        prompts=len(pairs),
        equal_ids=len(pairs) - len(parted),
        equal_lengths=sum(len(one.ids) == len(two.ids) for one, two in pairs),
        diverged_upper=cp_upper(len(parted), n=len(pairs)),
        divergences=tuple(_divergence(one, two, at) for one, two, at in parted),
    )


def _divergence(one: Answer, two: Answer, at: int) -> Divergence:
    known = at < len(two.margins)
    margin, rank = (two.margins[at], 2) if known else (None, None)
    return Divergence(two.prompt, "any", at, len(two.ids), len(one.ids), margin, rank)
