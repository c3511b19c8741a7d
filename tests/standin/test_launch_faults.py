"""Faults of a whole launch, each seen where a run would see it."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kit.diagnosis import Cause, diagnose
from kit.standin.faults import LaunchFailure
from kit.standin.launch import prepare
from tests.standin.process import CHAIN
from tests.standin.served import FLAGS, served

GREEDY = {"temperature": 0, "max_new_tokens": 24, "ignore_eos": True}
ADAPTIVE = (*CHAIN[:4], "--speculative-adaptive", "--speculative-num-steps", "7", "--speculative-eagle-topk", "1")
DEATHS = {
    LaunchFailure.OOM_WEIGHTS: ([signal.SIGKILL], Cause.GPU_MEMORY_WEIGHTS),
    LaunchFailure.OOM_KV: ([signal.SIGKILL], Cause.GPU_MEMORY_KV_POOL),
    LaunchFailure.OOM_GRAPH: ([signal.SIGKILL], Cause.GPU_MEMORY_GRAPHS),
    LaunchFailure.DRAFT_CONTEXT: ([signal.SIGKILL], Cause.DRAFT_CONTEXT_LENGTH),
    LaunchFailure.PORT_TAKEN: ([], Cause.PORT_IN_USE),
}


@pytest.mark.parametrize("failure", LaunchFailure)
def test_a_failed_launch_ends_as_sglang_does_and_its_log_names_the_cause(
    failure: LaunchFailure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    signals: list[int] = []
    monkeypatch.setattr("kit.standin.deaths.os.kill", lambda _, number: signals.append(number))
    caplog.set_level("INFO")
    with pytest.raises(SystemExit) as ended:
        prepare((*FLAGS, *CHAIN, "--fault", failure))
    expected, cause = DEATHS[failure]
    assert (signals, ended.value.code) == (expected, 1)
    log = "\n".join(f"[2026-01-05 10:00:00] {message}" for message in caplog.messages)
    assert diagnose(log, exit_code=-9 if signals else 1).cause is cause


def ask(client: Any, number: int, **sampling: Any) -> Any:
    body = {"text": f"prompt {number}", "sampling_params": GREEDY | sampling}
    return client.post("/generate", json=body).json()


def info(client: Any) -> tuple[Any, Any]:
    top = client.get("/server_info").json()
    return top, top["internal_states"][0]


def test_a_slow_start_answers_503_until_it_is_warm() -> None:
    with served("--fault", "slow-start=30", "--version", "0.5.21", warm=False) as client:
        assert [client.get(path).status_code for path in ("/health", "/health_generate", "/ready")] == [503] * 3
        assert client.get("/model_info").status_code == 200
        assert info(client)[0]["status"] == "starting"


def test_another_model_answers_under_its_own_name() -> None:
    with served("--fault", "wrong-model=else/where") as client:
        assert [part.get("model_path") for part in info(client)] == ["else/where"] * 2
        assert client.get("/model_info").json()["model_path"] == "else/where"


def test_a_baseline_that_speculates_says_so_and_counts_rounds() -> None:
    with served("--fault", "speculating-baseline") as client:
        assert info(client)[1]["speculative_algorithm"] == "EAGLE3"
        assert ask(client, 0)["meta_info"]["spec_verify_ct"] > 0


def test_a_cache_that_was_left_on_serves_prompts_that_were_never_sent() -> None:
    with served("--fault", "leftover-cache") as client:
        assert client.post("/flush_cache").status_code == 200
        meta = ask(client, 0)["meta_info"]
    assert meta["cached_tokens"] == meta["prompt_tokens"] - 1
    assert meta["cached_tokens_details"] == {"device": meta["cached_tokens"], "host": 0}


def test_a_dropped_trace_leaves_no_file_and_no_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECKIT_TRACE_DIR", str(tmp_path / "trace"))
    with served("--fault", "drop-trace") as client:
        ask(client, 0)
        assert "speckit_trace" not in info(client)[1]
    assert not (tmp_path / "trace").exists()


def test_a_late_host_counts_its_late_iterations() -> None:
    with served("--fault", "late-host=15") as client:
        ask(client, 0, max_new_tokens=5)
        standin = info(client)[1]["standin"]
    assert standin["iterations"] == standin["late"] > 5


def test_no_more_than_48_requests_run_whatever_was_asked_for() -> None:
    capped = prepare((*FLAGS, "--max-running-requests", "64", "--fault", "cap-48")).settings
    assert (capped.limits.running_requests, capped.arguments["max_running_requests"]) == (48, 48)


def test_batches_above_a_size_decode_without_a_graph_although_more_were_captured() -> None:
    launch = prepare((*FLAGS, "--fault", "eager-above=4"))
    assert launch.largest_graph == 4 < launch.settings.largest_graph


def test_of_a_dead_draft_nothing_is_accepted() -> None:
    with served(*CHAIN, "--fault", "dead-draft") as client:
        assert ask(client, 0)["meta_info"]["spec_correct_drafts_histogram"] == [23]


def test_adaptive_mode_is_dropped_with_the_warning_that_sglang_writes() -> None:
    settings = prepare((*FLAGS, *ADAPTIVE, "--fault", "adaptive-off")).settings
    assert settings.arguments["speculative_adaptive"] is False
    assert settings.speculation is not None and settings.speculation.ladder is None
    assert diagnose(f"[2026-01-05 10:00:00] {settings.warnings[-1]}").cause is Cause.ADAPTIVE_OFF


def test_a_pool_that_is_too_small_retracts_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with served(*CHAIN, "--fault", "retract=100") as client, ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: ask(client, number, max_new_tokens=60), range(6)))
    metas = [answer["meta_info"] for answer in answers]
    assert sum(meta["num_retractions"] for meta in metas) > 0
    assert {meta["completion_tokens"] for meta in metas} == {60}
    assert "KV cache pool is full. Retract requests. #retracted_reqs: 1" in caplog.text
    for meta in metas:
        made = 1 + meta["num_retractions"] + meta["spec_verify_ct"] + meta["spec_num_correct_drafts"]
        assert 0 <= made - meta["completion_tokens"] <= 3


@pytest.mark.parametrize("fault, finish", [((), "stop"), (("--fault", "length-before-stop"), "length")])
def test_the_finish_order_of_0_5_15_can_be_had_in_a_later_version(fault: tuple[str, ...], finish: str) -> None:
    with served("--version", "0.5.21", *fault) as client:
        third = ask(client, 0)["output_ids"][2]
        ended = ask(client, 0, ignore_eos=False, stop_token_ids=[third], max_new_tokens=3)
    assert ended["meta_info"]["finish_reason"]["type"] == finish
    assert len(ended["output_ids"]) == 3
