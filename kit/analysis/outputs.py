"""Outputs compared token by token: every arm against its baseline, and the baseline against itself (method 4).

Two outputs belong together when they answer the same prompt in the same block. Greedy decoding of one model has one
text, so a difference is either numerical noise, which the baseline shows against itself too, or the arm's doing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kit.analysis.index import Index, divergence
from kit.analysis.output_results import Divergence, Losslessness, Pairing
from kit.records import RequestRecord, Role
from kit.sglang import token_choice
from kit.spec import BaselineArm
from kit.stats import cp_upper

__all__ = ["losslessness"]

Key = tuple[int, str]  # block and prompt


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Answers of one arm at one concurrency, by block and prompt, and the launches that gave them."""

    arm: str
    concurrency: int
    launches: tuple[int, ...]
    answers: Mapping[Key, RequestRecord]


def losslessness(index: Index) -> tuple[Losslessness, ...]:
    """Arms against baselines at equal concurrency, then the controls (`aa_tokens`)."""
    measured = {
        (arm.name, c): _outputs(index, arm.name, c, Role.MEASURE)
        for arm in index.spec.arms
        for c, _ in index.levels(arm.name, of=index.outputs)
    }
    return (*_against_baselines(index, measured), *_controls(index, measured))


def _against_baselines(index: Index, measured: Mapping[tuple[str, int], _Outputs]) -> Iterator[Losslessness]:
    for (name, concurrency), outputs in measured.items():
        reference = index.spec.reference(index.arms[name])
        if reference is not None and (reference.name, concurrency) in measured:
            yield from _compared(Pairing.ARM, outputs, measured[reference.name, concurrency])


def _controls(index: Index, measured: Mapping[tuple[str, int], _Outputs]) -> Iterator[Losslessness]:
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
                    again = _outputs(index, arm.name, concurrency, role)
                    yield from _compared(Pairing.AA_TOKENS, again, measured[arm.name, concurrency])


def _outputs(index: Index, arm: str, concurrency: int, role: Role) -> _Outputs:
    table = index.outputs
    cells = dict(index.levels(arm, role=role, of=table)).get(concurrency, ())
    answers: dict[Key, RequestRecord] = {}
    launches: set[int] = set()
    for at in (np.isin(table.cell, cells) & table.ok & (table.ids > 0)).nonzero()[0].tolist():
        launch = index.launches[int(table.launch[at])]
        launches.add(launch.launch)
        answers.setdefault((launch.block, table.records[at].prompt), table.records[at])
    return _Outputs(arm, concurrency, tuple(sorted(launches)), answers)


def _compared(pairing: Pairing, other: _Outputs, reference: _Outputs) -> Iterator[Losslessness]:
    """The comparison on the prompts that both have; nothing when they share none."""
    shared = sorted(reference.answers.keys() & other.answers.keys())
    if not shared:
        return
    pairs = [(other.answers[key], reference.answers[key]) for key in shared]
    divergences = tuple(_divergences(pairs))
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
    )


def _divergences(pairs: Iterable[tuple[RequestRecord, RequestRecord]]) -> Iterator[Divergence]:
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
                past_the_end=_past_the_end(reference, other, at),
            )


def _token(record: RequestRecord, at: int) -> int | None:
    return int(record.output_ids[at]) if at < len(record.output_ids) else None


def _past_the_end(reference: RequestRecord, other: RequestRecord, at: int) -> bool:
    """Whether the reference stopped by itself at `at` and the other went on from there until its limit."""
    stopped, capped = reference.finish_reason == "stop", other.finish_reason == "length"
    return stopped and capped and at == len(reference.output_ids) and len(other.output_ids) == other.max_new_tokens
