"""Replications: a run in virtual time, through a run file, judged like any other, held against its world's truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kit.analysis import analyse
from kit.selftest.cases import CASES, Case
from kit.selftest.claims import Band, Outcome, Truth, violated
from kit.selftest.ties import with_ties
from kit.selftest.virtual import virtual_run
from kit.standin.world import Noise
from kit.stats import cp_lower, cp_upper
from kit.store import read_run, write_facts
from kit.verdict import judge

__all__ = ["DECISIVE", "Result", "replicate", "run_selftest", "truth_of"]

TRUTH_RUNS = 120
DECISIVE = 400
"""Runs from which a share has to lie inside its band; below, the band must not be refuted at 1 %."""
_TRUTH_SEED = 900_000


@dataclass(frozen=True, slots=True)
class Result:
    """How often one claim held in one world, in `runs` runs that bear on it."""

    case: str
    claim: str
    band: Band
    runs: int
    held: int

    @property
    def share(self) -> float | None:
        """Share of runs; None without one."""
        return self.held / self.runs if self.runs else None

    @property
    def limits(self) -> tuple[float, float] | None:
        """95 % Clopper-Pearson limits of the share; None without a run."""
        lower, upper = cp_lower(self.held, n=self.runs, alpha=0.025), cp_upper(self.held, n=self.runs, alpha=0.025)
        return None if lower is None or upper is None else (lower, upper)

    @property
    def kept(self) -> bool:
        """Whether the claim is kept: the share lies in its band, or few runs do not refute that."""
        if self.share is None:
            return False
        if self.runs >= DECISIVE:
            return self.band.lowest <= self.share <= self.band.highest
        lower, upper = (limit(self.held, n=self.runs, alpha=0.005) or 0.0 for limit in (cp_lower, cp_upper))
        return lower <= self.band.highest and self.band.lowest <= upper


def run_selftest(*, replications: int, seed: int, jobs: int, cases: Sequence[Case] = CASES) -> Iterator[Result]:
    """Every claim of every case. The same seed gives the same results, however many jobs share the work."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for case in cases:
            truth = truth_of(case)
            runs = math.ceil(replications * case.share)
            outcomes = pool.map(partial(replicate, case.name, truth), range(seed, seed + runs), chunksize=4)
            yield from _tally(case, [one for run in outcomes for one in run])


def _tally(case: Case, outcomes: Sequence[Outcome]) -> Iterator[Result]:
    for claim, band in case.bands.items():
        mine = [one.held for one in outcomes if one.claim == claim]
        yield Result(case.name, claim, band, len(mine), sum(mine))


def replicate(name: str, truth: Truth, seed: int) -> list[Outcome]:
    """One run of the case of that name."""
    case = next(case for case in CASES if case.name == name)
    facts = virtual_run(case.spec, case.world, seed=seed)
    if case.ties:
        facts = with_ties(facts, baseline="baseline", violations=violated(seed), seed=seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.duckdb"
        write_facts(path, facts)
        verdict = judge(read_run(path))
    return list(case.judge(verdict, truth, seed))


def truth_of(case: Case, *, runs: int = TRUTH_RUNS) -> Truth:
    """Expected log throughput and pooled curves: means over runs without noise in which everything else is drawn.

    Cells of the same shape as the measured ones: a cell is short, and its beginning is part of what is measured.
    """
    if not case.ties:  # only the speed case asks for numbers; the other worlds' truths are in their definitions
        return Truth({}, {})
    quiet = case.world.model_copy(update={"noise": Noise(launch_sd=0.0, iteration_sd=0.0)})
    logs: dict[tuple[str, int], list[float]] = {}
    drafts: dict[tuple[str, int], np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for number in range(runs):
        facts = virtual_run(case.spec, quiet, seed=_TRUTH_SEED + number)
        for cell in analyse(facts).cells:
            if cell.throughput_window.point is not None:
                logs.setdefault((cell.arm, cell.concurrency), []).append(math.log(cell.throughput_window.point))
        for record in facts.requests:
            if record.histogram:
                cell_of = facts.cells[record.repetition]
                key = (facts.launches[cell_of.launch].arm, cell_of.concurrency)
                total = drafts.setdefault(key, np.zeros(8, np.int64))
                total[: len(record.histogram)] += np.array(record.histogram, np.int64)
    return Truth({key: float(np.mean(values)) for key, values in logs.items()}, _curves(case, drafts))


def _curves(
    case: Case, drafts: dict[tuple[str, int], np.ndarray[tuple[int], np.dtype[np.int64]]]
) -> dict[tuple[str, int], tuple[float, ...]]:
    depths = {arm.name: arm.num_steps for arm in case.spec.arms if arm.kind == "eagle3"}
    return {
        (arm, level): tuple(float(h[k:].sum() / h.sum()) for k in range(1, depths[arm] + 1))
        for (arm, level), h in drafts.items()
    }
