"""Which positions the baseline's server is asked about once more: where outputs part, and some where none does.

Verification and plain decoding run different kernels, so a divergence has to survive a prefill on the baseline's own
server, held against what decode and prefill of other positions differ by there (docs/method.md 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kit.analysis.index import Index
from kit.analysis.output_results import Losslessness, Pairing
from kit.analysis.outputs import losslessness, outputs_of
from kit.analysis.prefilled import PROMPT_IDS
from kit.records import RequestRecord, Role, RunFacts
from kit.units import Tokens

__all__ = ["Look", "second_looks"]

_CONTROLS = 64
_SEED = 0


@dataclass(frozen=True, slots=True)
class Look:
    """One question: which token follows `ids`, the prompt and the output tokens up to a position."""

    concurrency: int
    prompt: str
    prompt_class: str
    ids: tuple[int, ...]


def second_looks(facts: RunFacts) -> tuple[Look, ...]:
    """Every place where an arm parts from its baseline, and up to 64 other places a concurrency, without repetition."""
    index = Index(facts)
    compared = [one for one in losslessness(index) if one.pairing is Pairing.ARM]
    return tuple(dict.fromkeys(look for one in compared for look in _looks(index, one)))


def _looks(index: Index, compared: Losslessness) -> Iterator[Look]:
    concurrency = compared.reference_concurrency
    answers = outputs_of(index, compared.reference_arm, concurrency, Role.MEASURE).answers.values()
    known = {answer.prompt: answer for answer in answers if PROMPT_IDS in (answer.meta_info or {})}
    for parted in compared.divergences:
        answer = known.get(parted.prompt)
        if answer is not None and not parted.past_the_end and parted.index < len(answer.output_ids):
            yield _look(concurrency, answer, parted.index)
    rng = np.random.default_rng([_SEED, concurrency])
    for answer in [answer for answer in known.values() if len(answer.output_ids)][:_CONTROLS]:
        yield _look(concurrency, answer, int(rng.integers(len(answer.output_ids))))


def _look(concurrency: int, answer: RequestRecord, at: Tokens) -> Look:
    prompt: list[int] = (answer.meta_info or {})[PROMPT_IDS]
    return Look(concurrency, answer.prompt, answer.prompt_class, (*prompt, *answer.output_ids[:at].tolist()))
