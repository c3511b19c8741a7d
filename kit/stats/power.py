"""How many blocks of launches a ratio needs: power of the paired t test on the log ratio (method 5.6).

A block's log ratio has sd sqrt(2) times that of a launch, since both arms contribute one.
"""

from __future__ import annotations

import math
from typing import Final

from scipy import stats

from kit.stats.errors import StatsError
from kit.stats.speedup import MIN_BLOCKS

__all__ = ["blocks_needed", "paired_power"]

MAX_BLOCKS: Final = 1000
ALPHA: Final = 0.05


def paired_power(
    ratio: float, *, launch_sd: float, blocks: int, alpha: float = ALPHA, noise_threshold: float = 0.0
) -> float:
    """Probability that `blocks` paired blocks find the true ratio beyond the noise threshold, one-sided at alpha.

    launch_sd is the sd of log throughput between launches of one arm, e.g. 0.03.
    """
    if not (0 < launch_sd < math.inf and 2 <= blocks <= MAX_BLOCKS and 0 < alpha < 1):
        raise StatsError(
            f"launch sd {launch_sd} or alpha {alpha} is not above 0, or blocks {blocks} not 2 to {MAX_BLOCKS}"
        )
    distance = _beyond(ratio, noise_threshold)
    freedom = blocks - 1
    critical = stats.t.ppf(1 - alpha, freedom)
    shift = distance * math.sqrt(blocks / 2) / launch_sd
    return float(stats.nct.sf(critical, freedom, shift))


def _beyond(ratio: float, threshold: float) -> float:
    """Distance of the log ratio past the threshold on its own side; negative when it lies inside."""
    if not (0 < ratio < math.inf and 0 <= threshold < 1):
        raise StatsError(f"ratio {ratio} is not above 0, or noise threshold {threshold} not a share below 1")
    gain = math.log(ratio)
    return gain - math.log1p(threshold) if gain > 0 else math.log1p(-threshold) - gain


def blocks_needed(
    ratio: float,
    *,
    launch_sd: float,
    power: float = 0.8,
    alpha: float = ALPHA,
    noise_threshold: float = 0.0,
) -> int | None:
    """Smallest number of blocks, at least three, with the stated power; None when even a thousand do not reach it."""
    if _beyond(ratio, noise_threshold) <= 0:
        return None

    def enough(blocks: int) -> bool:
        reached = paired_power(ratio, launch_sd=launch_sd, blocks=blocks, alpha=alpha, noise_threshold=noise_threshold)
        return reached >= power

    if not enough(MAX_BLOCKS):
        return None
    low, high = MIN_BLOCKS - 1, MAX_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
