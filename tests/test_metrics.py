"""Every metric is defined once, in words."""

from __future__ import annotations

import pytest

from kit.metrics import METRICS, Direction, metric
from kit.spec import Spec


def test_tags_and_labels_name_one_metric_each() -> None:
    assert len({m.tag for m in METRICS}) == len(METRICS)
    assert len({m.label for m in METRICS}) == len(METRICS)


def test_exactly_the_metric_of_the_decision_rule_decides() -> None:
    rule = Spec.model_fields["decision"].default.metric
    assert [m.tag for m in METRICS if m.decides] == [rule]
    assert metric(rule).direction is Direction.HIGHER


def test_a_second_is_never_printed_as_a_ratio() -> None:
    for m in METRICS:
        assert m.tag.endswith("_s") == (m.unit == "s")
        assert (m.unit == "s") == (m.display.symbol in ("s", "ms"))


def test_an_unknown_tag_is_an_error() -> None:
    with pytest.raises(KeyError):
        metric("throughput")
