"""Near-ties and violations laid over the outputs of a run, as an engine with rounding noise would write them.

Every position of a prompt has a true margin between its two best tokens. A launch sees it through noise and takes the
runner-up where the noise is larger; from there its text is another one. A violation takes the runner-up where the
margin is wide. The baseline records its two best log-probabilities, as a server does that is asked for them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kit.records import RequestRecord, RunFacts

__all__ = ["SIGMA", "with_ties"]

Floats = npt.NDArray[np.float64]
SIGMA = 0.004
"""Spread of the noise of a margin, in log-probability."""
WIDE = 0.5
"""Margin from which a divergence is a violation."""


def with_ties(facts: RunFacts, *, baseline: str, violations: int, seed: int) -> RunFacts:
    """The run with noisy greedy choices; `violations` prompts a speculating cell also part at a wide margin."""
    arms = {cell.cell: facts.launches[cell.launch].arm for cell in facts.cells}
    cells: dict[int, list[RequestRecord]] = {}
    for record in facts.requests:
        cells.setdefault(record.repetition, []).append(record)
    changed: list[RequestRecord] = []
    for cell, records in cells.items():
        rng = np.random.default_rng([seed, cell])
        wrong = 0 if arms[cell] == baseline else violations
        for at, record in enumerate(records):
            changed.append(_noisy(record, rng, violated=at < wrong, recorded=arms[cell] == baseline))
    return replace(facts, requests=tuple(changed))


def _noisy(record: RequestRecord, rng: np.random.Generator, *, violated: bool, recorded: bool) -> RequestRecord:
    margin = _margins(record)
    seen = margin + SIGMA * rng.standard_normal(len(margin))
    flips = np.flatnonzero(seen < 0)
    if violated:
        flips = np.append(flips, rng.choice(np.flatnonzero(margin > WIDE)))
    ids = record.output_ids.copy()
    other = ids + 1
    if len(flips):
        first = int(flips.min())
        ids[first:], other[first:] = other[first:], record.output_ids[first:]
    meta = {"output_top_logprobs": _top_two(ids, other, np.abs(seen))} if recorded else None
    return replace(record, output_ids=ids, meta_info=meta)


def _margins(record: RequestRecord) -> Floats:
    """True margins of a prompt's positions, the same in every launch; exponential, so that their density at 0 is 1."""
    drawn = np.random.default_rng(record.output_ids[:4]).exponential(1.0, len(record.output_ids))
    return np.asarray(drawn, float)


def _top_two(ids: npt.NDArray[np.int64], other: npt.NDArray[np.int64], margin: Floats) -> list[list[list[object]]]:
    pairs = zip(ids.tolist(), other.tolist(), margin.tolist(), strict=True)
    return [[[-0.5, chosen, None], [-0.5 - width, second, None]] for chosen, second, width in pairs]
