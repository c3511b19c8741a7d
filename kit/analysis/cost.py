"""Cost of every speculating arm against its baseline, and the model of an iteration's time (method 3.1 and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from kit.analysis.acceptance_results import Acceptance
from kit.analysis.cost_results import CostRow, Costs, IterationModel, ModelCell, TaxRow, ThroughputBasis
from kit.analysis.launch_cells import LaunchCells, Reading, full_run
from kit.analysis.results import CellResult
from kit.records import Role
from kit.spec import Eagle3Arm, Spec
from kit.stats import CostAccount, IterationCost, cost_account, fit_iteration_cost, speculation_tax
from kit.units import MS_PER_S

__all__ = ["account_costs", "fitted"]

MIXED = "K changes from iteration to iteration, so no iteration has a K to account for"
UNPAIRED = "no block has a throughput of both arm and baseline"


def account_costs(
    spec: Spec, cells: Sequence[CellResult], acceptance: Sequence[Acceptance], *, valid: Set[int]
) -> Costs:
    """The cost table; it uses the steady window of `valid` cells, or full runs where no cell has a window."""
    data = LaunchCells(spec, tuple(cells), valid)
    windowed = any(data.window(cell) is not None for cell in cells)
    costs = _Costs(data, data.window if windowed else full_run)
    rows = tuple(costs.row(one) for one in acceptance)
    model, reason = _model(costs, rows)
    return Costs(
        basis=ThroughputBasis.WINDOW if windowed else ThroughputBasis.FULL_RUN,
        rows=rows,
        taxes=tuple(_taxes(rows)),
        model=model,
        model_reason=reason,
    )


@dataclass(frozen=True, slots=True)
class _Costs:
    """Cells with the reading of throughput that the accounts rest on."""

    data: LaunchCells
    reading: Reading

    def row(self, acceptance: Acceptance) -> CostRow:
        """The account of one arm at one concurrency."""
        if acceptance.adaptive:
            return CostRow(acceptance.arm, acceptance.concurrency, None, MIXED)
        account = self._account(acceptance)
        reason = None if account else acceptance.acceptance_length.reason or UNPAIRED
        return CostRow(acceptance.arm, acceptance.concurrency, account, reason)

    def _account(self, acceptance: Acceptance) -> CostAccount | None:
        spec = self.data.spec
        arm = spec.arm(acceptance.arm)
        reference = spec.reference(arm)
        if reference is None or acceptance.concurrency not in self.data.levels():
            return None
        at = self.data.levels().index(acceptance.concurrency)
        mine, theirs = (
            self.data.matrix(name, Role.MEASURE, self.reading)[:, at] for name in (arm.name, reference.name)
        )
        account = cost_account(
            acceptance.acceptance_length, K=acceptance.depth, batch=acceptance.concurrency, X=mine, X0=theirs
        )
        # A tree verifies more positions than its depth says.
        return account and replace(account, tokens_per_position=acceptance.tokens_per_position)

    def is_chain(self, row: CostRow) -> bool:
        """Whether K says how much an iteration verifies."""
        arm = self.data.spec.arm(row.arm)
        return isinstance(arm, Eagle3Arm) and arm.topk == 1


def _taxes(rows: Sequence[CostRow]) -> Iterator[TaxRow]:
    """One line a concurrency, where three depths or more have an account: two points fit any line."""
    for concurrency in sorted({row.concurrency for row in rows}):
        accounts = [row.account for row in rows if row.concurrency == concurrency and row.account is not None]
        points = {a.K: (a.iter_ms.point or 0.0, a.iter_ms_0.point or 0.0) for a in accounts}
        depths = sorted(depth for depth in points if depth > 0)
        if len(depths) > 2:
            times = [points[depth][0] for depth in depths]
            tax = speculation_tax(depths, iter_ms=times, iter_ms_0=points[depths[0]][1])
            if tax is not None:
                yield TaxRow(concurrency, tuple(depths), tax)


def fitted(cells: Sequence[ModelCell]) -> IterationCost:
    """The model of an iteration's time through the cells."""
    return fit_iteration_cost(
        [cell.batch for cell in cells],
        K=[cell.depth for cell in cells],
        seconds=[cell.seconds for cell in cells],
    )


def _model(costs: _Costs, rows: Sequence[CostRow]) -> tuple[IterationModel | None, str | None]:
    """The model through every chain's cells and their baselines', or why there is none."""
    cells: dict[tuple[int, int], ModelCell] = {}
    for row in rows:
        if row.account is not None and costs.is_chain(row):
            for depth, estimate in ((row.account.K, row.account.iter_ms), (0, row.account.iter_ms_0)):
                if estimate.point is not None:
                    cell = ModelCell(row.concurrency, depth, estimate.point / MS_PER_S)
                    cells.setdefault((row.concurrency, depth), cell)
    if not cells:
        return None, "no fixed chain has an account"
    found = tuple(cells.values())
    fit = fitted(found)
    return IterationModel(tuple(fit.coefficients.tolist()), found, fit.loo_error, fit.interpolates), None
