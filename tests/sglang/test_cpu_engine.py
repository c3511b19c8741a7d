"""SGLang 0.5.21 with a real target and a real EAGLE3 draft: what the kit relies on holds, exactly, in float32."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from kit.analysis import analyse
from kit.records import LaunchStatus, Outcome, Phase, RequestRecord, RunFacts
from kit.sglang import effective_config
from tests.sglang.runs import SPECS, depths_of

pytestmark = [pytest.mark.sglang, pytest.mark.slow]

# SGLang's own ladder: the K that a batch of one and a batch of eight can get.
LADDER = {1: {1, 3, 7}, 8: {0, 1, 3}}


def requests(facts: RunFacts, arm: str, phase: Phase | None = None) -> list[tuple[int, RequestRecord]]:
    """Requests of an arm with the concurrency each was sent at."""
    arms = {launch.launch: launch.arm for launch in facts.launches}
    cells = {cell.cell: cell for cell in facts.cells}
    wanted = {r.repetition: cells[r.cell] for r in facts.repetitions if phase in (None, r.phase)}
    return [
        (wanted[request.repetition].concurrency, request)
        for request in facts.requests
        if request.repetition in wanted and arms[wanted[request.repetition].launch] == arm
    ]


def test_the_kernels_pass_their_own_tests(engine: Path) -> None:
    subprocess.run(
        [engine, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=SPECS.parent / "docker/sglang-cpu", check=True
    )


def test_every_arm_is_launched_and_every_request_is_answered_in_full(facts: RunFacts) -> None:
    assert sorted((launch.arm, launch.status) for launch in facts.launches) == [
        ("adaptive", LaunchStatus.COMPLETED),
        ("baseline", LaunchStatus.COMPLETED),
        ("k3", LaunchStatus.COMPLETED),
    ]
    assert {request.outcome for request in facts.requests} == {Outcome.OK}
    assert all(len(request.output_ids) == request.max_new_tokens for request in facts.requests)
    assert all(request.cached_tokens == request.retractions == 0 for request in facts.requests)


def test_no_speculation_reports_no_verify_round(facts: RunFacts) -> None:
    assert {request.histogram for _, request in requests(facts, "baseline")} == {None}


@pytest.mark.parametrize("arm", ["k3", "adaptive"])
def test_the_histogram_of_a_request_counts_its_rounds_and_its_drafts(facts: RunFacts, arm: str) -> None:
    for _, request in requests(facts, arm):
        histogram = np.array(request.histogram)
        assert request.verify_rounds is not None and request.correct_drafts is not None
        assert histogram.sum() == request.verify_rounds
        assert histogram @ np.arange(len(histogram)) == request.correct_drafts
        # The first token comes from prefill, every round adds its bonus; the last round may run past the end.
        made = 1 + request.verify_rounds + request.correct_drafts
        assert 0 <= made - request.max_new_tokens <= len(histogram) - 1


def test_drafts_of_a_fixed_k_are_accepted_and_never_more_than_k(facts: RunFacts) -> None:
    histograms = [request.histogram or () for _, request in requests(facts, "k3")]
    assert max(map(len, histograms)) <= 4
    assert sum(sum(histogram[1:]) for histogram in histograms) > 0


@pytest.mark.parametrize("arm", ["k3", "adaptive"])
def test_speculation_writes_the_same_tokens_as_no_speculation(facts: RunFacts, arm: str) -> None:
    kept = (Phase.WARMUP, Phase.TIMED)
    plain, speculated = (
        {(level, phase, r.index): r.output_ids.tolist() for phase in kept for level, r in requests(facts, name, phase)}
        for name in ("baseline", arm)
    )
    assert plain
    assert speculated == plain


@pytest.mark.parametrize("arm", ["baseline", "k3", "adaptive"])
def test_a_prompt_gets_the_same_tokens_alone_and_among_eight(facts: RunFacts, arm: str) -> None:
    answers: dict[str, set[tuple[int, ...]]] = {}
    for _, request in requests(facts, arm, Phase.TIMED):
        answers.setdefault(request.prompt, set()).add(tuple(request.output_ids.tolist()))
    assert {len(different) for different in answers.values()} == {1}


def test_the_trace_of_every_launch_is_whole_and_counts_what_the_answers_count(facts: RunFacts) -> None:
    assert facts.trace.lost == 0
    traced = {
        launch.launch: (launch.server_info or {})["internal_states"][0]["speckit_trace"] for launch in facts.launches
    }
    assert {proof["reviewed_as"] for proof in traced.values()} == {"0.5.21"}
    books = analyse(facts).reconciliation
    assert {book.launch for book in books} == traced.keys()
    assert [(book.exact, book.reasons) for book in books] == [(book.requests, ()) for book in books]


def test_the_adaptive_arm_stays_on_its_ladder_and_a_fixed_k_stays_what_it_is(facts: RunFacts) -> None:
    depths = {arm: depths_of(facts, arm) for arm in ("baseline", "k3", "adaptive")}
    assert (depths["baseline"], depths["k3"]) == ({-1}, {3})
    # The draft is weak, so the controller leaves the K it was launched at.
    assert len(depths["adaptive"]) > 1
    assert depths["adaptive"] <= LADDER[1] | LADDER[8]


def test_the_server_says_what_it_was_launched_with(facts: RunFacts) -> None:
    by_arm = {launch.arm: effective_config(launch.server_info or {}) for launch in facts.launches}
    assert {arm: config["speculative_algorithm"] for arm, config in by_arm.items()} == {
        "baseline": None,
        "k3": "EAGLE3",
        "adaptive": "EAGLE3",
    }
    # What the adaptive controller has come to is a K of its ladder.
    assert by_arm["k3"]["speculative_num_steps"] == 3
    assert by_arm["adaptive"]["speculative_num_steps"] in LADDER[1] | LADDER[8]
    assert {config["attention_backend"] for config in by_arm.values()} == {"torch_native"}
