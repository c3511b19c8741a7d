"""What the baseline's server chose when it was asked once more, by prefilling what came before a position."""

from __future__ import annotations

from collections.abc import Mapping

from kit.analysis.index import Index
from kit.records import Phase, RequestRecord
from kit.units import Tokens

__all__ = ["PROMPT_IDS", "Position", "prefilled"]

PROMPT_IDS = "prompt_token_ids"
Position = tuple[int, str, Tokens]
"""Concurrency of the compared answers, prompt, and output tokens before the position."""


def prefilled(index: Index) -> Mapping[Position, RequestRecord]:
    """The second looks of a run. How many output tokens were prefilled follows from the length of the prompt."""
    cell_of = {one.repetition: one.cell for one in index.facts.repetitions if one.phase is Phase.PREFILL}
    if not cell_of:
        return {}
    lengths = {
        answer.prompt: answer.prompt_tokens
        for answer in index.outputs.records
        if answer.prompt_tokens is not None and PROMPT_IDS in (answer.meta_info or {})
    }
    found = {}
    for look in index.facts.requests:
        if look.repetition in cell_of and look.prompt_tokens is not None and look.prompt in lengths:
            concurrency = index.cells[cell_of[look.repetition]].concurrency
            found[concurrency, look.prompt, look.prompt_tokens - lengths[look.prompt]] = look
    return found
