"""Throughput of every arm and level, second run over first, paired over the blocks that both have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kit.compare.results import ArmRatio
from kit.compare.side import ByBlock, Measured, paired
from kit.spec import Arm
from kit.stats import Estimate, LevelTest, RatioCurve, level_tests, ratio_estimate, speed_words

__all__ = ["arm_ratios"]

_NOT_MEASURED = Estimate.missing("this run has no cell of it")


@dataclass(frozen=True, slots=True)
class _Tested:
    """One arm at one concurrency with its tests, before words."""

    arm: Arm
    concurrency: int
    ratio: LevelTest
    gain: LevelTest | None


def arm_ratios(first: Measured, second: Measured) -> tuple[ArmRatio, ...]:
    """A row for each arm and concurrency that either run measured."""
    levels = sorted({*first.levels(), *second.levels()})
    arms = [arm for arm in first.spec.arms if any(_has(arm, side) for side in (first, second))]
    tested = [_tested(first, second, arm, concurrency) for arm in arms for concurrency in levels]
    alpha = 1 - first.spec.decision.confidence_level
    words = speed_words([one.ratio for one in tested], alpha=alpha)
    gains = iter(speed_words([one.gain for one in tested if one.gain is not None], alpha=alpha))
    rows = []
    for one, word in zip(tested, words, strict=True):
        name, concurrency = one.arm.name, one.concurrency
        rows.append(
            ArmRatio(
                arm=name,
                concurrency=concurrency,
                first_tok_s=_throughput(first, name, concurrency),
                second_tok_s=_throughput(second, name, concurrency),
                ratio=one.ratio.ratio,
                word=word,
                gain=one.gain.ratio if one.gain else None,
                gain_word=next(gains) if one.gain else None,
                tpot_ratio=_tpot(first, second, name, concurrency),
            )
        )
    return tuple(rows)


def _has(arm: Arm, side: Measured) -> bool:
    return any(cell.arm == arm.name for cell in side.cells)


def _tested(first: Measured, second: Measured, arm: Arm, concurrency: int) -> _Tested:
    mine, theirs = first.window(arm.name, concurrency), second.window(arm.name, concurrency)
    reference = first.spec.reference(arm)
    gain = None
    if reference is not None:
        before = _over(mine, first.window(reference.name, concurrency))
        after = _over(theirs, second.window(reference.name, concurrency))
        gain = _test(first, before, after, concurrency)
    return _Tested(arm, concurrency, _test(first, mine, theirs, concurrency), gain)


def _over(mine: ByBlock, baseline: ByBlock) -> ByBlock:
    return {block: mine[block] / baseline[block] for block in mine if block in baseline}


def _test(side: Measured, first: ByBlock, second: ByBlock, concurrency: int) -> LevelTest:
    under, over = (np.reshape(values, (-1, 1)) for values in paired(first, second))
    curve = RatioCurve.of([concurrency], arm=over, baseline=under)
    decision = side.spec.decision
    return level_tests(curve, noise_threshold=decision.noise_threshold, level=decision.confidence_level)[0]


def _throughput(side: Measured, arm: str, concurrency: int) -> Estimate:
    level = side.level(arm, concurrency)
    return level.throughput_window if level else _NOT_MEASURED


def _tpot(first: Measured, second: Measured, arm: str, concurrency: int) -> Estimate:
    under, over = paired(first.tpot(arm, concurrency), second.tpot(arm, concurrency))
    return ratio_estimate(over, b=under, level=first.spec.decision.confidence_level)
