"""How requests differ: between prompts, inside a wave, between kinds, and whether a curve belongs to its request."""

from __future__ import annotations

from dataclasses import replace

from kit.analysis import Heterogeneity, analyse
from kit.records import RunFacts, Trace
from tests.builders import build_run, build_spec, shared_run
from tests.captures import CPU, H200, facts_of


def found(facts: RunFacts) -> Heterogeneity:
    return analyse(facts).heterogeneity


def test_every_fixed_chain_has_its_spread_at_every_concurrency() -> None:
    spreads = found(shared_run()).spreads
    assert [(one.arm, one.concurrency) for one in spreads] == [
        ("eagle3_k1", 1),
        ("eagle3_k1", 4),
        ("eagle3_k3", 1),
        ("eagle3_k3", 4),
    ]
    for one in spreads:
        assert one.spread.sd_between.interval is not None and one.spread.icc.interval is not None
        assert {one.easiest, one.hardest} == {"chat", "code"}
        assert one.class_ratio.point is not None and one.class_ratio.point >= 1


def test_a_wave_of_one_request_has_no_spread_inside() -> None:
    alone, together, *_ = found(shared_run()).spreads
    assert alone.within_wave.point is None and alone.within_wave.reason
    assert together.within_wave.interval is not None and together.within_wave.n == 12


def test_halves_of_the_text_need_the_trace() -> None:
    blind = found(replace(shared_run(), trace=Trace.empty()))
    assert all(one.split_half.point is None and "trace" in (one.split_half.reason or "") for one in blind.spreads)
    assert blind.ownerships == () and blind.ownership_reason


def test_the_recorded_capture_has_numbers_or_reasons_everywhere() -> None:
    for name in (H200, CPU):
        heterogeneity = found(facts_of(name))
        for one in heterogeneity.spreads:
            for estimate in (one.spread.sd_between, one.spread.icc, one.within_wave, one.class_ratio, one.split_half):
                assert estimate.interval is not None or estimate.reason
        assert heterogeneity.ownerships or heterogeneity.ownership_reason


def test_one_request_gives_reasons_and_no_number() -> None:
    lone = build_run(build_spec(load={"concurrency": [1], "waves": 1, "min_requests": 1}, workload={"prompts": 3}))
    for one in found(lone).spreads:
        assert one.within_wave.point is None and one.split_half.reason
