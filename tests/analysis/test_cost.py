"""Cost accounting rests on the throughput that may decide, and says where no draft could win."""

from __future__ import annotations

import pytest

from kit.analysis import Costs, ThroughputBasis, account_costs, analyse, spec_of
from kit.records import RunFacts
from tests.builders import build_run, build_spec, eagle3, shared_run
from tests.captures import H200, facts_of


def costs_of(facts: RunFacts, *, usable: bool = True) -> Costs:
    analysis = analyse(facts)
    valid = frozenset(cell.cell for cell in analysis.cells) if usable else frozenset()
    return account_costs(spec_of(facts), analysis.cells, analysis.acceptance, valid=valid)


def test_a_speed_ratio_is_tokens_a_round_over_the_ratio_of_iteration_times() -> None:
    costs = costs_of(shared_run())
    assert costs.basis is ThroughputBasis.WINDOW
    assert len(costs.rows) == 4
    for row in costs.rows:
        assert row.account is not None and row.account.time_ratio.point and row.account.accepted.point is not None
        tau = 1 + row.account.accepted.point
        assert row.account.speedup.point == pytest.approx(tau / row.account.time_ratio.point)
        assert row.account.break_even_accepted.interval is not None


def test_no_draft_wins_where_an_iteration_takes_longer_than_all_its_drafts_could_save() -> None:
    facts = build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, eagle3(1)]), cost=_slow)
    (alone, together) = (row.account for row in costs_of(facts).rows)
    assert alone is not None and together is not None
    assert alone.no_draft_can_win is False
    assert together.no_draft_can_win is True


def _slow(depth: int, batch: int) -> float:
    """Speculation is nearly free alone and takes three times as long in company."""
    return 0.01 * (1 + 2 * (depth > 0) * (batch > 1))


def test_a_line_over_depths_needs_three_of_them() -> None:
    arms = [{"kind": "baseline", "name": "baseline"}, eagle3(1), eagle3(2), eagle3(3)]
    taxes = costs_of(build_run(build_spec(arms=arms), cost=lambda depth, _: 0.01 + 0.002 * depth, noise=0.0)).taxes
    assert [row.depths for row in taxes] == [(1, 2, 3), (1, 2, 3)]
    assert taxes[0].tax.per_depth_ms == pytest.approx(2.0, rel=0.1)
    assert costs_of(shared_run()).taxes == ()


def test_the_model_recovers_an_iteration_that_has_its_form() -> None:
    arms = [{"kind": "baseline", "name": "baseline"}, eagle3(1), eagle3(3)]
    spec = build_spec(arms=arms, load={"concurrency": [1, 2, 4]})
    model = costs_of(build_run(spec, cost=_linear, noise=0.0)).model
    assert model is not None and model.loo_error is not None
    assert len(model.cells) == 9
    assert model.interpolates
    assert model.terms[0] == pytest.approx(0.010, rel=0.1)


def _linear(depth: int, batch: int) -> float:
    return 0.010 + 0.0005 * batch * (depth + 1) + 0.001 * depth + 0.002 * (depth > 0)


def test_without_a_valid_window_iteration_times_follow_from_full_runs() -> None:
    assert costs_of(shared_run(), usable=False).basis is ThroughputBasis.FULL_RUN


def test_one_launch_of_each_arm_gives_points_with_the_reason_for_missing_intervals() -> None:
    costs = costs_of(facts_of(H200), usable=False)
    by_arm = {row.arm: row for row in costs.rows}
    assert by_arm["adaptive"].account is None and "K changes" in (by_arm["adaptive"].reason or "")
    account = by_arm["eagle3_k3"].account
    assert account is not None and account.ceiling.point and account.ceiling.interval is None
    assert "blocks" in (account.ceiling.reason or "") and account.no_draft_can_win is None
    assert account.accepted.interval is not None
