"""Rounds, reconciliation and adaptive depth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats import (
    Resampling,
    Rounds,
    StatsError,
    adaptive_curve,
    ipcw,
    ipcw_estimate,
    km,
    reconcile,
    reconcile_rounds,
    starts,
)
from kit.stats.arrays import IntArray
from tests.stats.worlds import easy_and_hard_texts

request_rounds = st.lists(
    st.sampled_from([0, 1, 3]).flatmap(lambda K: st.tuples(st.just(K), st.integers(0, K))), min_size=1, max_size=12
)


def response(rows: list[tuple[int, int]], *, K: int, count_plain: bool = False) -> tuple[list[int], int]:
    """Histogram and completion tokens that a server would report for these rounds."""
    hist = [0] * (K + 1)
    for active, accepted in rows:
        hist[accepted] += 1 if active or count_plain else 0
    return hist, 1 + sum(accepted + 1 for _, accepted in rows)


@given(request_rounds)
def test_a_request_that_accounts_for_every_row_is_trusted(rows: list[tuple[int, int]]) -> None:
    hist, tokens = response(rows, K=3)
    assert reconcile(rows, hist=hist, completion_tokens=tokens, Kmax=3)["status"] == "ok"
    counted, _ = response(rows, K=3, count_plain=True)
    assert reconcile(rows, hist=counted, completion_tokens=tokens, Kmax=3)["status"] == "ok"


@given(request_rounds, st.integers(0, 3))
def test_a_row_too_few_is_untrusted_and_one_ghost_is_dropped(rows: list[tuple[int, int]], ghost: int) -> None:
    hist, tokens = response([*rows, (3, 2)], K=3)
    assert reconcile(rows, hist=hist, completion_tokens=tokens, Kmax=3)["status"] == "untrusted"
    after = reconcile([*rows, (3, 2), (3, ghost)], hist=hist, completion_tokens=tokens, Kmax=3)
    assert after["status"] == "ok_trailing_dropped"


@given(st.lists(st.tuples(request_rounds, st.booleans()), min_size=1, max_size=6))
def test_a_capture_reconciles_as_its_requests_do_one_by_one(
    requests: list[tuple[list[tuple[int, int]], bool]],
) -> None:
    claimed = [response(rows, K=3) for rows, _ in requests]
    # Some requests lie about their tokens.
    claimed = [(h, t + 9 * lies) for (h, t), (_, lies) in zip(claimed, requests, strict=True)]
    flat = np.array([(i, *row) for i, (rows, _) in enumerate(requests) for row in rows])
    together = reconcile_rounds(
        flat[:, 0],
        active=flat[:, 1],
        accepted=flat[:, 2],
        hists=np.array([h for h, _ in claimed]),
        completion_tokens=[t for _, t in claimed],
    )
    alone = [
        reconcile(rows, hist=h, completion_tokens=t, Kmax=3)["status"] != "untrusted"
        for (rows, _), (h, t) in zip(requests, claimed, strict=True)
    ]
    assert together.trusted.tolist() == alone
    assert together.keep.tolist() == [alone[i] for i in flat[:, 0]]
    assert together.refused == (sum(alone) < 0.95 * len(alone))


def test_the_final_round_may_be_cut_by_at_most_its_drafts() -> None:
    def status(tokens: int) -> str:
        return reconcile([(3, 3), (3, 3)], hist=[0, 0, 0, 2], completion_tokens=tokens, Kmax=3)["status"]

    assert [status(tokens) for tokens in (10, 9, 6, 5)] == ["untrusted", "ok", "ok", "untrusted"]


def test_a_trace_without_requests_is_refused() -> None:
    empty = reconcile_rounds(
        np.empty(0, np.int64), active=[], accepted=[], hists=np.empty((0, 4), np.int64), completion_tokens=[]
    )
    assert empty.refused and empty.untrusted_share.reason == "no request was traced"


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=5))
def test_starts_of_a_capture_are_the_starts_of_its_requests(accepted: list[list[int]]) -> None:
    owner = np.repeat(np.arange(len(accepted)), [len(a) for a in accepted])
    rounds = Rounds.of(owner, active=3, accepted=np.concatenate(accepted))
    assert rounds.starts().tolist() == [s for a in accepted for s in starts(a)]


def test_rounds_group_by_request_and_keep_their_order_in_time() -> None:
    rounds = Rounds.of([1, 0, 1, 0], active=3, accepted=[3, 0, 1, 2])
    assert rounds.prompt.tolist() == [0, 0, 1, 1]
    assert rounds.accepted.tolist() == [0, 2, 3, 1]
    assert rounds.starts().tolist() == [1, 2, 1, 5]
    with pytest.raises(StatsError, match="more drafts than its depth"):
        Rounds.of([0], active=1, accepted=[2])
    with pytest.raises(StatsError, match="beyond Kmax"):
        km([[7, 2]], Kmax=3)
    with pytest.raises(StatsError, match="more than K=1"):
        rounds.histograms(prompts=2, K=1)


def adaptive_capture(runs: IntArray, *, seed: int, random_share: float) -> tuple[Rounds, IntArray, list[float]]:
    """A controller that goes deep after success, with random deep rounds; returns also the truth S_k at its starts."""
    rng = np.random.default_rng(seed)
    rows, seen = [], []
    for i, run in enumerate(runs):
        s, mean = 1, 0.5
        while s < len(run):
            deep = rng.random() < random_share
            active = 7 if deep else (3 if mean > 0.8 else 1)
            taken = min(int(run[s]), active)
            rows.append((i, active, taken, mean > 0.8))
            seen.append(int(run[s]))
            mean = 0.8 * mean + 0.2 * taken
            s += taken + 1
    table = np.array(rows)
    truth = [float(np.mean(np.array(seen) >= k)) for k in range(1, 8)]
    return Rounds.of(table[:, 0], active=table[:, 1], accepted=table[:, 2]), table[:, 3], truth


def test_informative_censoring_biases_kaplan_meier_and_not_ipcw_nor_the_bounds() -> None:
    runs, classes = easy_and_hard_texts(400, seed=3)
    rounds, confident, truth = adaptive_capture(runs, seed=4, random_share=0.1)
    curve = adaptive_curve(rounds, prompts=400, Kmax=7, resampling=Resampling(seed=1, draws=200), strata=classes)
    for k, row in enumerate(curve):
        assert row.lower.point is not None and row.upper.point is not None
        assert row.lower.point <= truth[k] <= row.upper.point
    # k = 2 is censored by the controller's shallow tier alone; k <= 3 is in force whenever it is confident.
    probability = np.where(confident, 1.0, 0.1)
    estimate = ipcw_estimate(rounds, probability=probability, k=3, prompts=400, strata=classes)
    assert estimate.interval is not None and estimate.interval.contains(truth[2])
    third = curve[2].km
    assert third.interval is not None and third.interval.lo > truth[2]
    assert "assumes independent censoring" in third.method


def test_without_randomisation_depth_never_in_force_stays_unknown() -> None:
    runs, _ = easy_and_hard_texts(40, seed=3)
    rounds, _, _ = adaptive_capture(runs, seed=4, random_share=0.0)
    curve = adaptive_curve(rounds, prompts=40, Kmax=7, resampling=Resampling(seed=1, draws=50))
    assert curve[3].at_risk == 0 and curve[3].km.reason == "this depth was never at risk"
    assert curve[3].lower.point == 0.0 and (curve[3].upper.point or 0) > 0.1
    assert ipcw([[1, 1, 0.5]], k=3) is None
    with pytest.raises(StatsError, match="randomised"):
        ipcw([[3, 1, 0.0]], k=3)


def test_plain_rows_are_never_at_risk() -> None:
    assert km([[0, 0], [3, 2], [0, 0]], Kmax=3) == km([[3, 2]], Kmax=3)
    assert [row["S_km"] for row in km([], Kmax=2)] == [None, None]
