"""docs/metrics.md says what kit/metrics.py says."""

from __future__ import annotations

from kit.metrics import METRICS
from kit.report import metrics_page


def test_every_metric_is_listed_and_defined_once() -> None:
    page = metrics_page()
    for metric in METRICS:
        assert page.count(f"\n| `{metric.tag}` ") == 1
        assert page.count(f"** (`{metric.tag}`): ") == 1


def test_the_page_names_the_one_metric_that_decides() -> None:
    assert "Only `output_throughput_window` decides" in metrics_page()
