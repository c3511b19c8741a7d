"""What analysis says about where speculation's time goes, and what choosing K could gain (method 3 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.stats import CostAccount, Disclosure, OracleGaps, SpeculationTax
from kit.units import Seconds

__all__ = [
    "CostRow",
    "Costs",
    "IterationModel",
    "ModelCell",
    "Oracle",
    "OracleKind",
    "OracleLevel",
    "TaxRow",
    "ThroughputBasis",
]


class ThroughputBasis(StrEnum):
    """Which throughput iteration times follow from."""

    WINDOW = "steady window"
    FULL_RUN = "full run"  # ramps included, so iteration times are upper estimates


@dataclass(frozen=True, slots=True)
class CostRow:
    """One speculating arm at one concurrency; `account` is None with a `reason`."""

    arm: str
    concurrency: int
    account: CostAccount | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TaxRow:
    """Line through the iteration times of the fixed chains at one concurrency, K from 1."""

    concurrency: int
    depths: tuple[int, ...]
    tax: SpeculationTax


@dataclass(frozen=True, slots=True)
class ModelCell:
    """Time of one iteration at a batch size and depth, 0 for the baseline."""

    batch: int
    depth: int
    seconds: Seconds


@dataclass(frozen=True, slots=True)
class IterationModel:
    """t(n, K) = c0 + c1 n (K+1) + c2 K + c3 1{K>0} + c4 n, fitted to `cells`; `terms` are c0 to c4.

    `loo_error` is the worst relative error of a cell that the fit left out, None with too few cells to leave one out;
    `interpolates` says whether the fit may be used between cells.
    """

    terms: tuple[Seconds, ...]
    cells: tuple[ModelCell, ...]
    loo_error: float | None
    interpolates: bool


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost accounting, and the model of an iteration's time fitted to its cells (None with a reason)."""

    basis: ThroughputBasis
    rows: tuple[CostRow, ...]
    taxes: tuple[TaxRow, ...]
    model: IterationModel | None
    model_reason: str | None


class OracleKind(StrEnum):
    """Where tokens per round at a shallow depth come from."""

    CURVE = "curve"  # read off the deepest curve (A)
    REPLAY = "replay"  # each depth's own capture of the same requests (B)


@dataclass(frozen=True, slots=True)
class OracleLevel:
    """Gaps between the policy levels at one concurrency, whose waves are the batches; None with a reason."""

    concurrency: int
    gaps: OracleGaps | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Oracle:
    """One oracle over the candidate depths. Without levels it is withheld, and `reason` says why."""

    kind: OracleKind
    disclosure: Disclosure
    depths: tuple[int, ...]
    levels: tuple[OracleLevel, ...]
    reason: str | None
