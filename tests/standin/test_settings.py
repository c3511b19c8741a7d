from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.contract import load
from kit.standin.adaptive import candidates
from kit.standin.flags import parse_arguments
from kit.standin.settings import LogitsBufferTooSmall, Settings, resolve

CONTRACT = load("0.5.15.post1")
EAGLE3 = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d")
CHAIN = (*EAGLE3, "--speculative-num-steps", "3", "--speculative-eagle-topk", "1")


def settings(*flags: str) -> Settings:
    return resolve(
        parse_arguments(("--model-path", "m", "--world", "crossover", *flags), contract=CONTRACT), contract=CONTRACT
    )


@pytest.mark.parametrize(
    "flags", [("--no-such-flag",), ("--attention-backend", "abacus"), ("--max-running-requests", "many")]
)
def test_what_sglang_does_not_know_ends_with_status_2(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        settings(*flags)
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_speculation_lowers_the_running_requests_and_refines_the_graphs_unless_told() -> None:
    baseline, chain, pinned = settings(), settings(*CHAIN), settings(*CHAIN, "--max-running-requests", "32")
    assert (baseline.limits.running_requests, chain.limits.running_requests) == (2048, 48)
    assert pinned.limits.running_requests == 32
    assert baseline.arguments["cuda_graph_config"]["decode"]["bs"][:6] == [1, 2, 4, 8, 12, 16]
    assert pinned.arguments["cuda_graph_config"]["decode"]["bs"] == [*range(1, 9), *range(10, 33, 2)]


def test_given_graph_sizes_are_captured_as_far_as_requests_can_run() -> None:
    given = settings("--cuda-graph-bs-decode", "1", "8", "32", "--max-running-requests", "16")
    decode = given.arguments["cuda_graph_config"]["decode"]
    assert (decode["backend"], decode["max_bs"], decode["bs"]) == ("full", 8, [1, 8])
    assert settings("--disable-cuda-graph").largest_graph == 0


def test_a_chain_verifies_one_token_more_than_it_drafts_whatever_was_asked_for() -> None:
    chain = settings(*CHAIN, "--speculative-num-draft-tokens", "9")
    assert chain.speculation is not None and chain.speculation.draft_tokens == 4
    assert chain.arguments["speculative_num_draft_tokens"] == 4
    assert chain.warnings
    assert chain.arguments["speculative_draft_model_revision"] == "main"


def test_without_a_shape_sglang_takes_a_tree() -> None:
    tree = settings(*EAGLE3)
    assert tree.speculation is not None
    assert (tree.speculation.steps, tree.speculation.draft_tokens, tree.reserved_tokens) == (5, 8, 20)


def test_steps_without_topk_do_not_start() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        settings(*EAGLE3, "--speculative-num-steps", "3")


def test_adaptive_starts_only_at_its_largest_candidate() -> None:
    adaptive = settings(
        *EAGLE3, "--speculative-adaptive", "--speculative-num-steps", "7", "--speculative-eagle-topk", "1"
    )
    assert adaptive.speculation is not None and adaptive.speculation.ladder
    assert candidates(adaptive.speculation.ladder) == (0, 1, 3, 7)
    with pytest.raises(LogitsBufferTooSmall, match="holds 192 rows but caller needs 384"):
        settings(*CHAIN, "--speculative-adaptive")


def test_adaptive_without_graphs_starts_in_the_middle_of_its_candidates() -> None:
    adaptive = settings(*EAGLE3, "--speculative-adaptive", "--disable-cuda-graph")
    assert adaptive.speculation is not None and adaptive.speculation.steps == 3


def test_adaptive_refuses_a_launch_depth_that_is_no_candidate() -> None:
    with pytest.raises(ValueError, match="candidate"):
        settings(*EAGLE3, "--speculative-adaptive", "--speculative-num-steps", "5", "--speculative-eagle-topk", "1")


def test_adaptive_is_switched_off_with_a_warning_for_a_tree() -> None:
    tree = settings(
        *EAGLE3,
        *("--speculative-adaptive", "--speculative-num-steps", "2"),
        *("--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "16"),
    )
    assert tree.speculation is not None and tree.speculation.ladder is None
    assert tree.arguments["speculative_adaptive"] is False
    assert "disabled" in tree.warnings[0]


def test_an_adaptive_configuration_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps({"1": {"candidate_steps": [2, 4]}}))
    adaptive = settings(
        *EAGLE3,
        *("--speculative-adaptive", "--speculative-adaptive-config", str(path)),
        *("--speculative-num-steps", "4", "--speculative-eagle-topk", "1"),
    )
    assert adaptive.speculation is not None and adaptive.speculation.ladder is not None
    assert adaptive.speculation.ladder[1].candidate_steps == (2, 4)


def test_server_info_has_every_argument_of_the_contract() -> None:
    assert set(settings().arguments) == CONTRACT.server_fields
    assert settings("--stream-output").arguments["incremental_streaming_output"] is True
    assert settings("--context-length", "4k").context_length == 4000


def test_0_5_15_switches_mixed_chunks_off_beside_speculation_and_0_5_21_keeps_them() -> None:
    assert settings(*CHAIN, "--enable-mixed-chunk").arguments["enable_mixed_chunk"] is False
    assert settings("--enable-mixed-chunk").arguments["enable_mixed_chunk"] is True
    later = load("0.5.21")
    flags = ("--model-path", "m", "--world", "crossover", *CHAIN, "--enable-mixed-chunk")
    kept = resolve(parse_arguments(flags, contract=later), contract=later)
    assert kept.arguments["enable_mixed_chunk"] is True
