"""Outputs compared token by token: every arm against its baseline, and the baseline against itself (method 4).

Two outputs belong together when they answer the same prompt in the same block. Greedy decoding of one model has one
text, so a difference is either numerical noise, which the baseline shows against itself too, or the arm's doing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np

from kit.analysis.index import Index, divergence
from kit.analysis.output_results import Divergence, Losslessness, Pairing
from kit.analysis.prefilled import Position, prefilled
from kit.records import RequestRecord, Role
from kit.sglang import preference, token_choice
from kit.spec import BaselineArm
from kit.stats import cp_upper, prefill_spread

__all__ = ["Outputs", "losslessness", "outputs_of"]

Key = tuple[int, str]  # block and prompt


@dataclass(frozen=True, slots=True)
class Outputs:
    """Answers of one arm at one concurrency, by block and prompt, and the launches that gave them."""

    arm: str
    concurrency: int
    launches: tuple[int, ...]
    answers: Mapping[Key, RequestRecord]


def losslessness(index: Index) -> tuple[Losslessness, ...]:
    """Arms against baselines at equal concurrency, then the controls (`aa_tokens`)."""
    measured = {
        (arm.name, c): outputs_of(index, arm.name, c, Role.MEASURE)
        for arm in index.spec.arms
        for c, _ in index.levels(arm.name, of=index.outputs)
    }
    return (*_against_baselines(index, measured), *_controls(index, measured))


def _against_baselines(index: Index, measured: Mapping[tuple[str, int], Outputs]) -> Iterator[Losslessness]:
    for (name, concurrency), outputs in measured.items():
        reference = index.spec.reference(index.arms[name])
        if reference is not None and (reference.name, concurrency) in measured:
            yield from _compared(Pairing.ARM, outputs, measured[reference.name, concurrency], prefilled(index))


def _controls(index: Index, measured: Mapping[tuple[str, int], Outputs]) -> Iterator[Losslessness]:
    """A baseline at each two concurrencies, and its control launches against its measuring ones."""
    for arm in index.spec.arms:
        if not isinstance(arm, BaselineArm):
            continue
        mine = [outputs for (name, _), outputs in measured.items() if name == arm.name]
        for one, other in combinations(mine, 2):
            yield from _compared(Pairing.AA_TOKENS, other, one)
        for role in (Role.AA_SPEED, Role.CLOSING):
            for concurrency, _ in index.levels(arm.name, role=role, of=index.outputs):
                if (arm.name, concurrency) in measured:
                    again = outputs_of(index, arm.name, concurrency, role)
                    yield from _compared(Pairing.AA_TOKENS, again, measured[arm.name, concurrency])


def outputs_of(index: Index, arm: str, concurrency: int, role: Role) -> Outputs:
    """The answers that are compared; of several launches in a block the first one's."""
    table = index.outputs
    cells = dict(index.levels(arm, role=role, of=table)).get(concurrency, ())
    answers: dict[Key, RequestRecord] = {}
    launches: set[int] = set()
    for at in (np.isin(table.cell, cells) & table.ok & (table.ids > 0)).nonzero()[0].tolist():
        launch = index.launches[int(table.launch[at])]
        launches.add(launch.launch)
        answers.setdefault((launch.block, table.records[at].prompt), table.records[at])
    return Outputs(arm, concurrency, tuple(sorted(launches)), answers)


def _compared(
    pairing: Pairing, other: Outputs, reference: Outputs, again: Mapping[Position, RequestRecord] = MappingProxyType({})
) -> Iterator[Losslessness]:
    """The comparison on the prompts that both have; nothing when they share none."""
    shared = sorted(reference.answers.keys() & other.answers.keys())
    if not shared:
        return
    pairs = [(other.answers[key], reference.answers[key]) for key in shared]
    looks = {(prompt, at): record for (c, prompt, at), record in again.items() if c == reference.concurrency}
    divergences = tuple(_divergences(pairs, looks))
    spread, asked = _spread(pairs, looks, parted={(one.prompt, one.index) for one in divergences})
    yield Losslessness(
        pairing=pairing,
        arm=other.arm,
        concurrency=other.concurrency,
        launches=other.launches,
        reference_arm=reference.arm,
        reference_concurrency=reference.concurrency,
        reference_launches=reference.launches,
        prompts=len(pairs),
        equal_ids=len(pairs) - len(divergences),
        equal_lengths=sum(len(one.output_ids) == len(two.output_ids) for one, two in pairs),
        diverged_upper=cp_upper(len(divergences), n=len(pairs)),
        divergences=divergences,
        prefill_spread=spread,
        asked_again=asked,
    )


def _spread(
    pairs: Iterable[tuple[RequestRecord, RequestRecord]],
    looks: Mapping[tuple[str, int], RequestRecord],
    *,
    parted: Collection[tuple[str, int]],
) -> tuple[float | None, int]:
    """How far decode and prefill of one position differ, and at how many positions where nothing parts."""
    references = {reference.prompt: reference for _, reference in pairs}
    margins = []
    for (prompt, at), again in looks.items():
        if prompt in references and (prompt, at) not in parted:
            token = int(references[prompt].output_ids[at])
            decode = preference(references[prompt].meta_info or {}, at=at, token=token)
            prefill = preference(again.meta_info or {}, at=0, token=token)
            if decode is not None and prefill is not None:
                margins.append((decode, prefill))
    decoded, filled = zip(*margins, strict=True) if margins else ((), ())
    return prefill_spread(decoded, prefill_margins=filled), len(margins)


def _divergences(
    pairs: Iterable[tuple[RequestRecord, RequestRecord]], looks: Mapping[tuple[str, int], RequestRecord]
) -> Iterator[Divergence]:
    for other, reference in pairs:
        at = divergence(reference, other)
        if at is not None:
            choice = token_choice(reference.meta_info or {}, at=at, token=_token(other, at))
            yield Divergence(
                prompt=reference.prompt,
                prompt_class=reference.prompt_class,
                index=at,
                reference_tokens=len(reference.output_ids),
                other_tokens=len(other.output_ids),
                margin=choice.margin if choice else None,
                rank=choice.rank if choice else None,
                prefill_margin=_asked_again(reference, at, looks.get((reference.prompt, at))),
                past_the_end=_past_the_end(reference, other, at),
            )


def _asked_again(reference: RequestRecord, at: int, again: RequestRecord | None) -> float | None:
    if again is None or at >= len(reference.output_ids):
        return None
    return preference(again.meta_info or {}, at=0, token=int(reference.output_ids[at]))


def _token(record: RequestRecord, at: int) -> int | None:
    return int(record.output_ids[at]) if at < len(record.output_ids) else None


def _past_the_end(reference: RequestRecord, other: RequestRecord, at: int) -> bool:
    """Whether the reference stopped by itself at `at` and the other went on from there until its limit."""
    stopped, capped = reference.finish_reason == "stop", other.finish_reason == "length"
    return stopped and capped and at == len(reference.output_ids) and len(other.output_ids) == other.max_new_tokens
