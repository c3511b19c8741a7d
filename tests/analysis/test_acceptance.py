"""Acceptance is counted over rounds of one depth, clustered by prompt; an adaptive depth is only bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.analysis import analyse
from kit.analysis.acceptance import prompt_histograms
from kit.analysis.index import Index
from kit.records import RunFacts, Trace
from tests.builders import build_run, build_spec, eagle3, shared_run

BASELINE = {"kind": "baseline", "name": "baseline"}
ADAPTIVE = {"kind": "adaptive", "name": "adaptive", "num_steps": 3}


def without_trace(facts: RunFacts) -> RunFacts:
    return replace(facts, trace=Trace.empty())


def adaptive_run() -> RunFacts:
    return build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, ADAPTIVE]))


def test_survival_is_the_pooled_share_of_rounds() -> None:
    facts = shared_run()
    for found in analyse(facts).acceptance:
        launches = {launch.launch for launch in facts.launches if launch.arm == found.arm}
        cells = {c.cell for c in facts.cells if c.launch in launches and c.concurrency == found.concurrency}
        mine = [r.histogram or () for r in facts.requests if r.repetition in cells]
        counts = [sum(h[j] if j < len(h) else 0 for h in mine) for j in range(found.depth + 1)]
        assert found.rounds == sum(counts)
        assert found.survival[0].point == pytest.approx(sum(counts[1:]) / sum(counts))
        mean = sum(j * n for j, n in enumerate(counts)) / sum(counts)
        assert found.acceptance_length.point == pytest.approx(1 + mean)
        assert found.tokens_per_position.point == pytest.approx((1 + mean) / (found.depth + 1))


def test_every_curve_has_an_interval_over_prompts() -> None:
    for found in analyse(shared_run()).acceptance:
        assert all(s.interval is not None and s.n == found.requests for s in found.survival)
        assert found.survival[0].n <= found.requests


def test_classes_partition_the_rounds() -> None:
    for found in analyse(shared_run()).acceptance:
        assert [c.prompt_class for c in found.classes] == ["chat", "code"]
        assert sum(c.rounds for c in found.classes) == found.rounds


def test_a_deeper_arm_needs_fewer_rounds_for_the_same_text() -> None:
    rounds = {(a.arm, a.concurrency): a.rounds for a in analyse(shared_run()).acceptance}
    for level in (1, 4):
        assert rounds["eagle3_k3", level] < rounds["eagle3_k1", level]


def test_an_adaptive_arm_shows_its_first_position_and_bounds_for_the_rest() -> None:
    for found in analyse(adaptive_run()).acceptance:
        assert len(found.survival) == 1
        assert len(found.bounds) == 3
        assert found.survival[0].point == found.bounds[0].lower.point == found.bounds[0].upper.point
        assert (found.bounds[2].lower.point or 0) < (found.bounds[2].upper.point or 0)
        assert found.tokens_per_position.point is None


def test_without_a_trace_an_adaptive_arm_shows_wider_bounds_and_no_curve() -> None:
    facts = adaptive_run()
    traced, untraced = analyse(facts).acceptance, analyse(without_trace(facts)).acceptance
    for known, found in zip(traced, untraced, strict=True):
        assert found.acceptance_length == known.acceptance_length
        assert found.survival == ()  # SGLang's own ladder may choose 0, so even the first position is bounded
        for inner, outer in zip(known.bounds, found.bounds, strict=True):
            assert (outer.lower.point or 0) <= (inner.lower.point or 0) <= (inner.upper.point or 0)
            assert (inner.upper.point or 0) <= (outer.upper.point or 0) + 1e-12
            assert (outer.at_risk, outer.km.point) == (None, None)
            assert "without a trace" in (outer.km.reason or "")


def test_the_first_position_is_known_without_a_trace_where_every_candidate_drafts() -> None:
    facts = build_run(build_spec(arms=[BASELINE, ADAPTIVE | {"candidates": {"1": [1, 3]}}]))
    traced, untraced = analyse(facts).acceptance, analyse(without_trace(facts)).acceptance
    assert [row.survival[0].point for row in untraced] == [row.survival[0].point for row in traced]
    assert all(len(row.survival) == 1 for row in untraced)


def test_the_controllers_depths_are_counted_with_their_switches() -> None:
    uses = analyse(adaptive_run()).adaptive
    for use in uses:
        assert {share.depth for share in use.depths} == {1, 3}
        assert sum(share.iterations for share in use.depths) == use.iterations
    whole = [use for use in uses if use.concurrency is None]
    assert all(use.switches == (use.iterations - 1) // 5 for use in whole)


def test_a_tree_is_marked_by_its_branching_factor() -> None:
    tree = eagle3(3, topk=2, num_draft_tokens=8)
    found = analyse(build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, tree])))
    assert {a.topk for a in found.acceptance} == {2}
    assert found.gates.v1.cells == ()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_histograms_of_prompts_lose_no_round(seed: int) -> None:
    index = Index(shared_run())
    chosen = np.random.default_rng(seed).random(len(index.requests)) < 0.3
    data = prompt_histograms(index, chosen, depth=3)
    assert data.hist.sum() == index.requests.hist[chosen].sum()
    assert len(data.prompt) == len(set(index.requests.prompt[chosen].tolist()))
