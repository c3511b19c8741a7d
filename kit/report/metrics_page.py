"""docs/metrics.md, generated from the one table of metrics."""

from __future__ import annotations

from kit.metrics import METRICS, Direction, Metric
from kit.report.escape import code, text
from kit.report.page import templates, tidy
from kit.report.table import table

__all__ = ["metrics_page"]

_BETTER = {Direction.HIGHER: "higher", Direction.LOWER: "lower", Direction.NEITHER: "describes"}


def metrics_page() -> str:
    """The page as Markdown that ends in one newline."""
    rows = [
        (code(one.tag), text(one.label), text(one.unit), text(one.display.symbol) or "as it is", _BETTER[one.direction])
        for one in METRICS
    ]
    shown = table(("Name in JSON", "Called", "Unit in JSON", "Printed in", "Better"), rows, align="lllll")
    decides = [code(one.tag) for one in METRICS if one.decides]
    page = templates().get_template("metrics.md.j2")
    return tidy(page.render(table=shown, decides=", ".join(decides), definitions=list(map(_definition, METRICS))))


def _definition(metric: Metric) -> str:
    return f"**{text(metric.label)}** ({code(metric.tag)}): {text(metric.formula)}."
