"""Cost: what an iteration of speculation takes, what must be accepted for it to pay, and whether any draft could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.analysis import CostRow, Costs, IterationModel, TaxRow, ThroughputBasis
from kit.format import PERCENT, RATIO, SHARE, Reading, Unit, count, sentence
from kit.report.entries import column, defined, points
from kit.report.escape import code, prose
from kit.report.table import Entry, table
from kit.stats import CostAccount
from kit.units import MS_PER_S

__all__ = ["CostView", "cost_view"]

_MS = Unit("ms", fewest=1, most=2)
_WORDS = {True: "**no draft could win here**", False: "a better draft could", None: "not decided"}
_TERMS = ("base", "each verified position", "each draft step", "speculating at all", "each request")


@dataclass(frozen=True, slots=True)
class CostView:
    """Strings of the section; empty where there is nothing to say."""

    break_even: str
    ceiling: str
    basis: str
    table: str
    left_out: tuple[str, ...]
    taxes: str
    model: str
    model_table: str


def cost_view(costs: Costs) -> CostView:
    """The section's strings."""
    accounted = [(row, row.account) for row in costs.rows if row.account is not None]
    return CostView(
        break_even=defined("break_even_accepted"),
        ceiling=defined("ceiling"),
        basis=_FULL_RUN if costs.basis is ThroughputBasis.FULL_RUN and costs.rows else "",
        table=_table(accounted) if accounted else "",
        left_out=tuple(_left_out(costs.rows)),
        taxes=_taxes(costs.taxes) if costs.taxes else "",
        model=_model(costs),
        model_table=_model_table(costs.model) if costs.model is not None and costs.model.interpolates else "",
    )


_FULL_RUN = (
    "There is no steady window, so iteration times follow from the throughput of the whole run, ramps included: they "
    "are upper estimates for both sides."
)


def _table(rows: Sequence[tuple[CostRow, CostAccount]]) -> str:
    accounts = [account for _, account in rows]
    columns: tuple[Sequence[str | Entry], ...] = (
        column([a.iter_ms for a in accounts], unit=_MS),
        column([a.time_ratio for a in accounts], unit=RATIO),
        column([a.break_even_accepted for a in accounts], unit=RATIO),
        column([a.accepted for a in accounts], unit=RATIO),
        column([a.tokens_per_position for a in accounts], unit=SHARE),
        column([a.ceiling for a in accounts], unit=RATIO),
        [_WORDS[a.no_draft_can_win] for a in accounts],
    )
    cells = [(code(row.arm), str(row.concurrency), *shown) for (row, _), *shown in zip(rows, *columns, strict=True)]
    header = (
        "Arm",
        "Requests at once",
        "Iteration, ms",
        "Times the baseline's",
        "Break-even",
        "Accepted",
        "Tokens a position",
        "Ceiling",
        "Could any draft win?",
    )
    return table(header, cells, align="lrrrrrrrl")


def _left_out(rows: Sequence[CostRow]) -> Iterator[str]:
    """Arms without an account, those with one reason together."""
    by_reason: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.account is None:
            by_reason.setdefault(row.reason or "no reason recorded", {})[code(row.arm)] = None
    for reason, arms in by_reason.items():
        yield f"No account of {', '.join(arms)}: {prose(reason)}."


def _taxes(rows: Sequence[TaxRow]) -> str:
    taxes = [row.tax for row in rows]
    columns = (
        points(values, unit=_MS)
        for values in zip(*((t.per_depth_ms, t.tax_ms, t.worst_residual_ms) for t in taxes), strict=True)
    )
    cells = [
        (str(row.concurrency), ", ".join(map(str, row.depths)), *shown)
        for row, *shown in zip(rows, *columns, strict=True)
    ]
    header = ("Requests at once", "K", "Each draft, ms", "Before the first draft, ms", "Worst residual, ms")
    return table(header, cells, align="rlrrr")


def _model(costs: Costs) -> str:
    model = costs.model
    if model is None:
        return (
            f"No model of an iteration's time was fitted: {prose(costs.model_reason or 'nothing was accounted for')}."
        )
    cells = f"{count(len(model.cells))} cells of batch size and K"
    if model.loo_error is None:
        return f"The model of an iteration's time has {cells}, too few to test it; only measured cells are used."
    worst = sentence(Reading(model.loo_error), unit=PERCENT)
    use = "so it may be used between cells" if model.interpolates else "so only measured cells are used"
    return (
        f"The model of an iteration's time, fitted to {cells}, misses a cell not seen before by up to {worst}, {use}."
    )


def _model_table(model: IterationModel) -> str:
    shown = points([term * MS_PER_S for term in model.terms], unit=Unit("ms", fewest=2, most=3))
    return table(("Part of an iteration", "ms"), list(zip(_TERMS, shown, strict=True)), align="lr")
