"""What the recorded captures are known to show comes out of the analysis."""

from __future__ import annotations

from functools import cache

import pytest

from kit.analysis import Analysis, Pairing, analyse
from kit.stats import Convention
from tests.captures import CPU, H200, facts_of


@cache
def analysis(name: str) -> Analysis:
    return analyse(facts_of(name))


FULL_RUN = {
    "baseline": (725, 3107, 7293),
    "eagle3_k3": (312, 1555, 3154),
    "eagle3_k7": (423, 2229, 4257),
    "adaptive": (289, 1322, 3061),
}


@pytest.mark.parametrize("arm", FULL_RUN)
def test_full_run_throughput_is_the_one_that_was_reported(arm: str) -> None:
    found = {c.concurrency: c.throughput_full_run.point for c in analysis(H200).cells if c.arm == arm}
    assert found == {
        level: pytest.approx(tok_s, rel=0.01) for level, tok_s in zip((1, 8, 32), FULL_RUN[arm], strict=True)
    }


def test_without_chunk_times_there_is_no_window_and_no_token_latency() -> None:
    for cell in analysis(H200).cells:
        assert cell.throughput_window.point is None
        assert cell.throughput_window.reason == "the client kept no chunk times"
        assert (cell.ttft_s.n, cell.tpot_s.n, cell.chunk_gap_s.n) == (0, 0, 0)
        assert cell.e2e_latency_s.n == cell.requests


def test_without_client_times_nothing_is_timed_and_everything_is_counted() -> None:
    for cell in analysis(CPU).cells:
        assert cell.throughput_full_run.point is None
        assert cell.throughput_full_run.reason == "the client kept no times"
        assert cell.achieved_concurrency.point is None
        assert cell.output_tokens > 0


@pytest.mark.parametrize(
    ("arm", "rounds", "survival"),
    [("eagle3_k3", 11_535, (0.4317, 0.1664, 0.0586)), ("eagle3_k7", 11_355, (0.4245, 0.1641, 0.0569))],
)
def test_survival_and_rounds_at_concurrency_32(arm: str, rounds: int, survival: tuple[float, ...]) -> None:
    (found,) = (a for a in analysis(H200).acceptance if a.arm == arm and a.concurrency == 32)
    assert found.rounds == rounds
    assert [round(s.point or 0, 4) for s in found.survival[:3]] == list(survival)
    assert (found.requests, found.dropped, found.convention) == (192, 0, Convention.UNTRUNCATED)
    assert len(found.survival) == found.depth


def test_an_adaptive_arm_is_bounded_and_never_given_a_naive_curve() -> None:
    (found,) = (a for a in analysis(H200).acceptance if a.adaptive and a.concurrency == 32)
    assert found.rounds == 13_967
    assert len(found.survival) == 1
    # 0.3069 is the histogram's S_1, wrong because rounds at K=0 proposed nothing
    assert found.survival[0].point == pytest.approx(0.4471, abs=1e-4)
    second = found.bounds[1]
    assert (second.lower.point or 0) < (second.km.point or 0) < (second.upper.point or 0)
    assert found.bounds[3].km.point is None


def test_the_controller_ran_the_depths_that_were_counted() -> None:
    (whole,) = (use for use in analysis(H200).adaptive if use.concurrency is None)
    assert {share.depth: share.iterations for share in whole.depths} == {0: 627, 1: 1460, 3: 1209, 7: 16}
    assert sum(share.iteration_share for share in whole.depths) == pytest.approx(1)


def test_the_baseline_disagrees_with_itself_across_concurrency() -> None:
    (control,) = (
        one
        for one in analysis(H200).losslessness
        if one.pairing is Pairing.AA_TOKENS and (one.concurrency, one.reference_concurrency) == (32, 1)
    )
    assert (control.prompts, control.equal_ids, control.equal_lengths) == (24, 12, 22)
    assert len(control.divergences) == 12


def test_in_float32_every_output_is_the_same() -> None:
    compared = analysis(CPU).losslessness
    assert {one.pairing for one in compared} == set(Pairing)
    assert all(one.equal_ids == one.prompts == 16 for one in compared)


@pytest.mark.parametrize(("name", "requests"), [(H200, 312), (CPU, 48)])
def test_the_trace_reproduces_every_histogram(name: str, requests: int) -> None:
    for books in analysis(name).reconciliation:
        assert (books.requests, books.exact, books.reasons) == (requests, requests, ())
    assert all(not identities.failures for identities in analysis(name).identities)


def test_rounds_without_drafting_are_counted_in_bin_zero() -> None:
    assert [books.k0_counted for books in analysis(H200).reconciliation if books.arm == "adaptive"] == [True]


def test_an_iteration_of_k7_is_faster_than_one_of_k3_in_these_two_launches() -> None:
    alone = {t.arm: t.median_s * 1000 for t in analysis(H200).iteration_times if t.batch_size == 1}
    assert alone["eagle3_k3"] == pytest.approx(4.1, abs=0.1)
    assert alone["eagle3_k7"] == pytest.approx(2.9, abs=0.1)


def test_the_gate_is_open_on_one_cell_and_alignment_lacks_prompts() -> None:
    gates = analysis(H200).gates
    assert [cell.inside for cell in gates.v1.cells].count(False) == 1
    assert gates.prompts_needed == 149
    assert gates.v2.control_word is not None


def test_one_depth_runs_no_gate() -> None:
    gates = analysis(CPU).gates
    assert gates.v1.cells == ()
    assert gates.v1.reason == "fewer than two depths were captured at one concurrency"
    assert gates.naive_passes is None
