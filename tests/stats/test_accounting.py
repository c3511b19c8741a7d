"""Cost accounting, with the earlier study A's table, and the power of a design."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    Estimate,
    Interval,
    StatsError,
    blocks_needed,
    cost,
    cost_account,
    paired_power,
    ratio_estimate,
    relative_se,
    speculation_tax,
)
from kit.stats.power import MAX_BLOCKS

# K: throughput and tokens per round at concurrency 32; without speculation 1049.7 tok/s.
STUDY_A = {1: (745.5, 1.443), 3: (753.1, 1.7251), 5: (655.5, 1.832), 7: (586.3, 1.9137)}
PLAIN = 1049.7


def test_study_a_could_not_win_at_one_draft_even_with_perfect_acceptance() -> None:
    rows = {K: cost(tau, K=K, B=32, X=X, X0=PLAIN) for K, (X, tau) in STUDY_A.items()}
    assert [round(row["iter_ms"], 1) for row in rows.values()] == [61.9, 73.3, 89.4, 104.4]
    assert [round(row["speedup"], 3) for row in rows.values()] == [0.710, 0.717, 0.624, 0.559]
    assert rows[1]["ceiling"] == pytest.approx(0.984, abs=5e-4) and rows[1]["break_even_accepted"] > 1
    assert all(row["accepted"] < row["break_even_accepted"] for row in rows.values())


def test_study_a_pays_a_fixed_tax_before_the_first_draft() -> None:
    times = [cost(tau, K=K, B=32, X=X, X0=PLAIN)["iter_ms"] for K, (X, tau) in STUDY_A.items()]
    tax = speculation_tax(list(STUDY_A), iter_ms=times, iter_ms_0=1000 * 32 / PLAIN)
    assert tax is not None
    assert tax.fixed_ms == pytest.approx(53.6, abs=0.1) and tax.per_depth_ms == pytest.approx(7.18, abs=0.01)
    assert tax.tax_ms == pytest.approx(23, abs=0.2) and tax.worst_residual_ms < 1.8
    assert speculation_tax([3], iter_ms=[73.3], iter_ms_0=30.5) is None


@given(st.floats(1, 8), st.integers(1, 7), st.floats(10, 1e4), st.floats(10, 1e4))
def test_the_identities_of_a_cost_row_hold(tau: float, K: int, X: float, X0: float) -> None:
    row = cost(tau, K=K, B=8, X=X, X0=X0)
    assert row["speedup"] == pytest.approx(tau / row["time_ratio"])
    assert row["time_ratio"] == pytest.approx(row["iter_ms"] / row["iter_ms_0"])
    # A cell wins exactly when it accepts more than the break-even.
    assert (row["accepted"] > row["break_even_accepted"]) is (tau > row["time_ratio"])


def test_launch_noise_reaches_the_break_even_as_the_formula_says() -> None:
    rng = np.random.default_rng(3)
    tau = Estimate(1.7251, Interval(1.7249, 1.7253, 0.95), 768, "prompts")
    launches = [753.1 * np.exp(rng.normal(0, 0.03, 400)), PLAIN * np.exp(rng.normal(0, 0.03, 400))]
    account = cost_account(tau, K=3, batch=32, X=launches[0], X0=launches[1])
    assert account is not None
    even = account.break_even_accepted
    assert even.point == pytest.approx(1.40, abs=0.02) and even.interval is not None
    expected = 2 * 1.96 * 2.404 * np.sqrt(2) * 0.03 / np.sqrt(400)
    assert even.interval.hi - even.interval.lo == pytest.approx(expected, rel=0.1)
    assert account.ceiling.interval is not None and account.ceiling.interval.contains(4 / 2.404)
    assert account.iter_ms_0.point == pytest.approx(30.5, rel=0.01)


def test_independent_errors_of_launches_and_acceptance_add_in_quadrature() -> None:
    blocks = {"X": [100.0, 104.0, 96.0], "X0": [120.0, 120.0, 120.0]}
    sharp = cost_account(Estimate(2.0, Interval(2.0, 2.0, 0.95), 99, "m"), K=3, batch=8, **blocks)
    blurred = cost_account(Estimate(2.0, Interval(1.8, 2.2, 0.95), 99, "m"), K=3, batch=8, **blocks)
    assert sharp is not None and blurred is not None

    def log_half(estimate: Estimate) -> float:
        assert estimate.interval is not None
        return float(np.log(estimate.interval.hi / estimate.interval.lo) / 2)

    assert log_half(blurred.time_ratio) == pytest.approx(np.hypot(log_half(sharp.time_ratio), 0.1))
    assert log_half(blurred.speedup) == pytest.approx(log_half(sharp.speedup))


def test_two_launches_give_costs_without_intervals_and_no_acceptance_gives_none() -> None:
    tau = Estimate(1.7, Interval(1.6, 1.8, 0.95), 100, "prompts")
    account = cost_account(tau, K=3, batch=8, X=[100.0, 101.0], X0=[120.0, 119.0])
    assert account is not None and account.ceiling.interval is None
    assert account.ceiling.reason == "2 of the 3 blocks that an interval needs"
    assert cost_account(Estimate.missing("no rounds"), K=3, batch=8, X=[1.0], X0=[1.0]) is None
    assert cost_account(tau, K=3, batch=8, X=[], X0=[]) is None
    with pytest.raises(StatsError, match="above 0"):
        cost(0.0, K=1, B=1, X=1.0, X0=1.0)


def test_no_draft_can_win_only_where_the_whole_ceiling_is_below_1() -> None:
    tau = Estimate(1.4, Interval(1.39, 1.41, 0.95), 100, "prompts")
    plain = [300.0, 303.0, 297.0]
    hopeless, open_, fine = (
        cost_account(tau, K=1, batch=8, X=[x * share for x in plain], X0=plain) for share in (0.5, 0.7, 0.9)
    )
    assert hopeless is not None and hopeless.no_draft_can_win is True
    assert open_ is not None and open_.no_draft_can_win is None
    assert fine is not None and fine.no_draft_can_win is False


def test_the_relative_error_of_an_iteration_is_that_of_the_logs_over_blocks() -> None:
    logs = np.array([0.01, -0.02, 0.015, 0.0])
    error = relative_se(ratio_estimate(np.exp(logs), b=np.ones(4)))
    assert error == pytest.approx(logs.std(ddof=1) / 2)
    assert relative_se(ratio_estimate([1.0], b=[1.0])) is None


def test_power_agrees_with_simulation_and_with_study_b() -> None:
    rng = np.random.default_rng(6)
    d = rng.normal(np.log(0.95), np.sqrt(2) * 0.03, (4000, 5))
    t = d.mean(axis=1) / (d.std(axis=1, ddof=1) / np.sqrt(5))
    assert paired_power(0.95, launch_sd=0.03, blocks=5) == pytest.approx((t < -2.132).mean(), abs=0.02)
    # Study B at one stream: log ratio -0.136, three blocks.
    assert 0.90 < paired_power(0.873, launch_sd=0.0316, blocks=3) < 0.96
    assert blocks_needed(0.873, launch_sd=0.03) == 3


@given(st.floats(0.5, 2.0), st.floats(0.005, 0.1), st.sampled_from([0.0, 0.01]))
def test_the_needed_blocks_are_the_fewest_with_the_power(ratio: float, sd: float, threshold: float) -> None:
    blocks = blocks_needed(ratio, launch_sd=sd, noise_threshold=threshold)
    if blocks is None:
        within = 1 - threshold < ratio < 1 + threshold
        most = paired_power(ratio, launch_sd=sd, blocks=MAX_BLOCKS, noise_threshold=threshold)
        assert within or most < 0.8
        return
    assert paired_power(ratio, launch_sd=sd, blocks=blocks, noise_threshold=threshold) >= 0.8
    fewer = blocks - 1
    assert fewer < 3 or paired_power(ratio, launch_sd=sd, blocks=fewer, noise_threshold=threshold) < 0.8
    with pytest.raises(StatsError, match="launch sd"):
        paired_power(ratio, launch_sd=0.0, blocks=3)
