"""Speed from the cells that may be used: throughput by level, ratios paired in blocks, crossover, saturation.

The ratio that decides uses valid cells only, so this runs after the doubts are known; what stands beside it (full-run
throughput, TPOT) uses every cell that has the number and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

import numpy as np

from kit.analysis.launch_cells import LaunchCells, Matrix, full_run
from kit.analysis.results import (
    ArmSaturation,
    ArmSweep,
    BlockRatio,
    CellResult,
    ClassComparison,
    Comparison,
    CrossoverResult,
    LevelResult,
    PeakComparison,
    Speed,
)
from kit.records import Role
from kit.spec import Arm, Spec
from kit.stats import (
    Crossover,
    Estimate,
    Interval,
    LevelTest,
    RatioCurve,
    Saturation,
    level_tests,
    peak_ratio,
    ratio_estimate,
    saturation,
    sweep_verdict,
)

__all__ = ["compare_speed"]

OVER_LAUNCHES = "t on the log over launches"
NO_NUMBER = "no cell that may be used has this number"


def compare_speed(spec: Spec, cells: Sequence[CellResult], *, valid: Set[int]) -> Speed:
    """Levels, comparisons and sweeps; `valid` holds the ids of the cells whose window throughput may decide."""
    data = LaunchCells(spec, tuple(cells), valid)
    pairs = [(arm, reference) for arm in spec.arms if (reference := spec.reference(arm)) is not None]
    measured = {cell.arm for cell in cells if cell.role is Role.MEASURE}
    pairs = [(arm, reference) for arm, reference in pairs if arm.name in measured]
    baseline = next((arm for arm in spec.arms if spec.reference(arm) is None), None)
    controls = {role: _control(data, baseline, role) for role in (Role.AA_SPEED, Role.CLOSING)}
    sweeps = [_sweep(data, arm.name, reference.name) for arm, reference in pairs]
    return Speed(
        levels=tuple(_levels(data)),
        comparisons=tuple(
            comparison
            for arm, reference in pairs
            for comparison in _comparisons(data, arm.name, reference.name, Role.MEASURE)
        ),
        sweeps=tuple(sweep for sweep, _ in sweeps),
        crossovers=tuple(crossover for _, crossover in sweeps),
        classes=tuple(one for arm, reference in pairs for one in _classes(data, arm.name, reference.name)),
        saturation=tuple(_saturation(data, arm.name) for arm in spec.arms if arm.name in measured),
        peaks=tuple(_peak(data, arm.name, reference.name) for arm, reference in pairs),
        aa_speed=controls[Role.AA_SPEED],
        closing=controls[Role.CLOSING],
    )


def _control(data: LaunchCells, baseline: Arm | None, role: Role) -> tuple[Comparison, ...]:
    """The baseline's launches in `role` against its measuring ones; empty when there are none."""
    if baseline is None or not any(cell.role is role for cell in data.cells):
        return ()
    return tuple(_comparisons(data, baseline.name, baseline.name, role))


def _levels(data: LaunchCells) -> Iterator[LevelResult]:
    for arm in data.spec.arms:
        for concurrency in data.levels():
            mine = [
                cell
                for cell in data.cells
                if cell.arm == arm.name and cell.concurrency == concurrency and cell.role is Role.MEASURE
            ]
            if mine:
                yield LevelResult(
                    arm=arm.name,
                    concurrency=concurrency,
                    launches=len({cell.launch for cell in mine}),
                    throughput_window=_over_launches(data, [data.window(cell) for cell in mine]),
                    throughput_full_run=_over_launches(data, [cell.throughput_full_run.point for cell in mine]),
                    tpot_s=_over_launches(data, [cell.tpot_s.p50 for cell in mine]),
                )


def _over_launches(data: LaunchCells, values: Sequence[float | None]) -> Estimate:
    """Geometric mean over launches with its t interval."""
    known = [value for value in values if value is not None]
    if not known:
        return Estimate.missing(NO_NUMBER, method=OVER_LAUNCHES)
    estimate = ratio_estimate(known, b=np.ones(len(known)), level=data.spec.decision.confidence_level)
    reason = None if estimate.interval else f"{len(known)} of the 3 launches that an interval needs"
    return replace(estimate, method=OVER_LAUNCHES, reason=reason)


def _comparisons(data: LaunchCells, arm: str, baseline: str, role: Role) -> Iterator[Comparison]:
    level = data.spec.decision.confidence_level
    mine, theirs = data.matrix(arm, role, data.window), data.matrix(baseline, Role.MEASURE, data.window)
    others = [
        (data.matrix(arm, role, reading), data.matrix(baseline, Role.MEASURE, reading)) for reading in (full_run, _tpot)
    ]
    tests = _tests(data, mine, theirs)
    measured = {cell.concurrency for cell in data.cells if cell.arm == arm and cell.role is role}
    for at, concurrency in enumerate(data.levels()):
        if concurrency not in measured:
            continue
        whole_run, tpot = (ratio_estimate(a[:, at], b=b[:, at], level=level) for a, b in others)
        test = tests[at]
        yield Comparison(
            arm=arm,
            baseline=baseline,
            concurrency=concurrency,
            ratio=test.ratio,
            ratio_full_run=whole_run,
            tpot_ratio=tpot,
            blocks=tuple(_blocks(data, mine[:, at], theirs[:, at])),
            p_faster=test.p_faster,
            p_slower=test.p_slower,
            p_equivalent=test.p_equivalent,
        )


def _tests(data: LaunchCells, mine: Matrix, theirs: Matrix) -> tuple[LevelTest, ...]:
    curve = RatioCurve.of(data.levels(), arm=mine, baseline=theirs)
    decision = data.spec.decision
    return level_tests(curve, noise_threshold=decision.noise_threshold, level=decision.confidence_level)


def _tpot(cell: CellResult) -> float | None:
    return cell.tpot_s.p50


def _blocks(data: LaunchCells, mine: Matrix, theirs: Matrix) -> Iterator[BlockRatio]:
    numbers = sorted({cell.block for cell in data.cells})
    for block, one, other in zip(numbers, mine.tolist(), theirs.tolist(), strict=True):
        if not (np.isnan(one) or np.isnan(other)):
            yield BlockRatio(block, one, other)


def _sweep(data: LaunchCells, arm: str, baseline: str) -> tuple[ArmSweep, CrossoverResult]:
    decision = data.spec.decision
    mine, theirs = (data.matrix(name, Role.MEASURE, data.window) for name in (arm, baseline))
    curve = RatioCurve.of(data.levels(), arm=mine, baseline=theirs)
    alpha = 1 - decision.confidence_level
    verdict = sweep_verdict(curve, noise_threshold=decision.noise_threshold, alpha=alpha)
    sweep = ArmSweep(arm, baseline, verdict.word, tuple(round(c) for c in verdict.undecided))
    return sweep, _crossover(data, arm, verdict.crossover)


def _crossover(data: LaunchCells, arm: str, found: Crossover) -> CrossoverResult:
    levels, confidence = data.levels(), found.confidence
    return CrossoverResult(
        arm=arm,
        crossing=found.kind,
        concurrency=found.at,
        confidence_set=tuple(Interval(lo, hi, confidence.level) for lo, hi in confidence.pieces),
        open_low=confidence.open_below,
        open_high=confidence.open_above,
        range_low=levels[0],
        range_high=levels[-1],
    )


def _saturation(data: LaunchCells, arm: str) -> ArmSaturation:
    """Fitted over the blocks in which the arm has every level."""
    matrix = data.matrix(arm, Role.MEASURE, data.window)
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    if len(whole):
        return ArmSaturation(arm, saturation(data.levels(), X=whole))
    missing = Estimate.missing("no block has a valid cell at every level", method="USL fit")
    return ArmSaturation(arm, Saturation(None, missing, None, None, missing, saturated=False))


def _peak(data: LaunchCells, arm: str, baseline: str) -> PeakComparison:
    """Fitted maxima of both, over the blocks in which both have every level."""
    mine, theirs = (data.matrix(name, Role.MEASURE, data.window) for name in (arm, baseline))
    return PeakComparison(arm, baseline, peak_ratio(data.levels(), arm=mine, baseline=theirs))


def _classes(data: LaunchCells, arm: str, baseline: str) -> Iterator[ClassComparison]:
    """Speed of each kind of prompt against the baseline's, where more than one kind was sent."""
    names = sorted({one.prompt_class for cell in data.cells for one in cell.classes})
    if len(names) < 2:
        return
    level = data.spec.decision.confidence_level
    pairs = {
        name: tuple(data.matrix(who, Role.MEASURE, partial(_class_speed, name)) for who in (arm, baseline))
        for name in names
    }
    for at, concurrency in enumerate(data.levels()):
        for name, (mine, theirs) in pairs.items():
            ratio = ratio_estimate(mine[:, at], b=theirs[:, at], level=level)
            if ratio.point is not None:
                yield ClassComparison(arm, baseline, concurrency, name, ratio)


def _class_speed(name: str, cell: CellResult) -> float | None:
    return next((one.tok_s for one in cell.classes if one.prompt_class == name), None)
