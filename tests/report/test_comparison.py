"""The comparison of two runs as text and as JSON."""

from __future__ import annotations

import json
from functools import cache

from kit.compare import Factor, RunComparison, compare
from kit.report import comparison_json, render_comparison
from tests.compare.runs import headed, on_backend, pair
from tests.report.golden import golden


@cache
def compared() -> RunComparison:
    return compare(*pair(), factor=Factor.BACKEND)


def test_the_document_is_the_reviewed_one() -> None:
    document = render_comparison(compared())
    assert document == golden("comparison.md", actual=document)


def test_every_number_is_in_the_json_with_its_interval() -> None:
    tree = json.loads(comparison_json(compared()))
    assert next(iter(tree)) == "schema_version"
    assert {"lo", "hi", "level"} == set(tree["arms"][2]["ratio"]["interval"])
    assert tree["taxes"][0]["difference_ms"]["method"].startswith("t on the difference")


def test_flags_of_either_run_stand_in_the_first_line() -> None:
    first, second = pair()
    late = headed(second, spec_commit=None, spec_committed_utc=None)
    text = render_comparison(compare(first, late, factor=Factor.BACKEND))
    assert text.splitlines()[0] == "triton: **NO FLAGS** · flashinfer: **NOT PRE-REGISTERED**"


def test_foreign_text_cannot_alter_the_document() -> None:
    first, second = (headed(on_backend(name), host={"cpu": f"<b>{name}|*"}) for name in ("triton", "flashinfer"))
    second = headed(second, spec_json=first.header.spec_json)
    text = render_comparison(compare(first, second, factor=Factor.HOST))
    assert "<b>" not in text.replace("`", "")
