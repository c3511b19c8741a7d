"""Small invented worlds with a known truth: texts whose acceptance does not depend on the depth that reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kit.stats import Rounds
from kit.stats.arrays import FloatArray, IntArray
from kit.stats.selection import walk_texts

TEXT = 256


def run_lengths(accepted: IntArray) -> IntArray:
    """R(s) of depth-free acceptance bits (texts, positions): accepted tokens in a row from s on."""
    runs = np.zeros((accepted.shape[0], accepted.shape[1] + 1), np.int64)
    for s in range(accepted.shape[1] - 1, -1, -1):
        runs[:, s] = np.where(accepted[:, s] > 0, runs[:, s + 1] + 1, 0)
    return runs[:, :-1]


def easy_and_hard_texts(prompts: int, *, seed: int, length: int = TEXT) -> tuple[IntArray, IntArray]:
    """Run lengths (prompts, length) of texts of easy and hard spells whose mix varies by prompt, and two classes."""
    rng = np.random.default_rng(seed)
    classes = np.arange(prompts) % 2
    easy_share = np.clip(np.where(classes == 0, 0.7, 0.2) + rng.normal(0, 0.2, prompts), 0, 1)[:, None]
    spell = rng.random((prompts, length // 16 + 1)) < easy_share
    easy = np.repeat(spell, 16, axis=1)[:, :length]
    bits = (rng.random((prompts, length)) < np.where(easy, 0.9, 0.2)).astype(np.int64)
    # A text that ends in a rejected token has no end effect: the conversion between depths is exact.
    bits[:, -1] = 0
    return run_lengths(bits), classes


def homogeneous_texts(prompts: int, *, seed: int, rate: float, length: int = TEXT) -> IntArray:
    """Run lengths of texts whose tokens are all accepted with one probability."""
    rng = np.random.default_rng(seed)
    return run_lengths((rng.random((prompts, length)) < rate).astype(np.int64))


def capture(runs: IntArray, *, K: int) -> Rounds:
    """The rounds that a static depth makes of these texts."""
    walks = walk_texts(runs, K=K)
    return Rounds.of(walks.text, active=K, accepted=walks.accepted)


def histograms(runs: IntArray, *, K: int) -> IntArray:
    """Accepted drafts per prompt at a static depth, (prompts, K+1)."""
    return capture(runs, K=K).histograms(prompts=len(runs), K=K)


@dataclass(frozen=True, slots=True)
class Shifted:
    """A draft that is worse by a known probability at one depth: some accepted rounds are cut to zero."""

    drop: float
    seed: int

    def capture(self, runs: IntArray, *, K: int) -> Rounds:
        """Rounds in which each run is read as 0 with probability `drop`, position by position."""
        rng = np.random.default_rng(self.seed)
        spoiled = np.where(rng.random(runs.shape) < self.drop, 0, runs)
        return capture(spoiled, K=K)


def cost_cells(n: FloatArray, K: FloatArray) -> FloatArray:
    """Iteration times of a known cost model, in seconds."""
    return np.asarray(0.020 + 0.0008 * n * (K + 1) + 0.002 * K + 0.004 * (K > 0) + 0.0002 * n, float)
