"""Our words to SGLang's and back: every flag stated, every count found under any of its names, none invented."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import contract
from kit.sglang import (
    TRACE_BLOCK,
    ContractViolation,
    TokenChoice,
    TracePlugin,
    adaptive_config_text,
    effective_config,
    generate_payload,
    identity_problem,
    launch_flags,
    read_meta,
    redact,
    token_choice,
    trace_plugin,
    trace_problem,
)
from tests.specs import make_spec

FINAL = {"id": "r0", "finish_reason": {"type": "length", "length": 5}, "prompt_tokens": 3, "completion_tokens": 5}
COUNTS = {"spec_verify_ct": 2}


def flags(arm: str, **sections: Any) -> tuple[str, ...]:
    spec = make_spec(**sections)
    return launch_flags(spec, spec.arm(arm))


def value(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_a_baseline_says_nothing_of_speculation() -> None:
    assert not [flag for flag in flags("baseline") if "speculative" in flag]


def test_a_chain_states_steps_topk_and_draft_tokens() -> None:
    argv = flags("k3")
    stated = [
        value(argv, f"--speculative-{name}") for name in ("algorithm", "num-steps", "eagle-topk", "num-draft-tokens")
    ]
    assert stated == ["EAGLE3", "3", "1", "4"]


def test_an_adaptive_arm_launches_at_its_largest_depth() -> None:
    argv = flags("adaptive")
    assert "--speculative-adaptive" in argv
    assert value(argv, "--speculative-num-steps") == "7"
    assert value(argv, "--speculative-num-draft-tokens") == "8"


def test_a_ladder_of_its_own_is_written_by_slot() -> None:
    arm = {"kind": "adaptive", "name": "adaptive", "num_steps": 3, "candidates": {"1": [1, 3], "8": [0, 1]}}
    spec = make_spec(arms=[{"kind": "baseline", "name": "baseline"}, arm])
    text = adaptive_config_text(spec.arm("adaptive"))
    assert json.loads(text or "") == {"1": {"candidate_steps": [1, 3]}, "8": {"candidate_steps": [0, 1]}}
    argv = launch_flags(spec, spec.arm("adaptive"), adaptive_config="/x/adaptive.json")
    assert value(argv, "--speculative-adaptive-config") == "/x/adaptive.json"


def test_what_an_arm_overrides_wins_over_the_shared_flag() -> None:
    baseline = {"kind": "baseline", "name": "baseline", "server": {"attention_backend": "flashinfer"}}
    assert value(flags("baseline", arms=[baseline]), "--attention-backend") == "flashinfer"


@pytest.mark.parametrize("version", contract.versions())
@pytest.mark.parametrize("arm", ["baseline", "k3", "adaptive"])
def test_every_version_takes_the_flags_of_every_kind_of_arm(arm: str, version: str) -> None:
    sizes = {"cuda_graph_batch_sizes": (1, 2, 8), "disable_prefill_cuda_graph": True, "max_total_tokens": 1000}
    assert contract.load(version).check_flags(flags(arm, server=sizes)) == ()


@pytest.mark.parametrize("version", contract.versions())
def test_every_version_takes_the_measured_request(version: str) -> None:
    payload = generate_payload("Say hello.", rid="r0", max_new_tokens=7, workload=make_spec().workload)
    assert contract.load(version).check_request(payload) == ()


@pytest.mark.parametrize(
    "names",
    [
        ("spec_num_correct_drafts", "spec_correct_drafts_histogram"),
        ("spec_accepted_drafts", "spec_accept_histogram"),
        ("spec_accept_token_num", "spec_accept_histogram"),
    ],
)
def test_counts_are_found_under_the_names_of_every_generation(names: tuple[str, str]) -> None:
    meta = read_meta(FINAL | COUNTS | {names[0]: 2, names[1]: [1, 0, 1]}, speculative=True)
    assert (meta.verify_rounds, meta.correct_drafts, meta.histogram) == (2, 2, (1, 0, 1))


def test_absent_counts_under_speculation_are_a_violation_and_never_zero() -> None:
    with pytest.raises(ContractViolation, match="spec_verify_ct is missing"):
        read_meta(FINAL, speculative=True)
    with pytest.raises(ContractViolation, match="histogram"):
        read_meta(FINAL | COUNTS | {"spec_num_correct_drafts": 2}, speculative=True)


def test_a_request_that_ended_in_prefill_has_no_round() -> None:
    meta = read_meta(FINAL | {"completion_tokens": 1}, speculative=True)
    assert (meta.verify_rounds, meta.histogram) == (None, None)


@given(
    st.dictionaries(st.sampled_from([*FINAL, *COUNTS, "spec_accept_histogram"]), st.integers() | st.text() | st.none())
)
def test_a_strange_meta_info_is_a_violation_or_a_value_but_nothing_else(noise: dict[str, Any]) -> None:
    try:
        meta = read_meta(FINAL | noise, speculative=True)
    except ContractViolation:
        return
    assert meta.completion_tokens >= 0


def test_internal_state_wins_over_what_was_asked_for() -> None:
    info = {"page_size": 1, "version": "0", "internal_states": [{"page_size": 64}]}
    assert effective_config(info) == {"page_size": 64, "version": "0"}


def test_a_speculating_server_is_no_baseline() -> None:
    spec = make_spec()
    info = {"model_path": "org/target", "speculative_algorithm": "EAGLE3", "internal_states": [{}]}
    assert "speculative_algorithm" in (identity_problem(info, spec, spec.arm("baseline")) or "")
    assert identity_problem(info | {"speculative_algorithm": None}, spec, spec.arm("baseline")) is None


def test_secrets_are_hidden_wherever_they_stand_and_nothing_else_is() -> None:
    info = {"api_key": "sk-1", "internal_states": [{"admin_api_key": "sk-2", "max_total_tokens": 5}], "hf_token": None}
    hidden = redact(info)
    assert "sk-" not in json.dumps(hidden)
    assert hidden["internal_states"][0]["max_total_tokens"] == 5
    assert hidden["hf_token"] is None


TOP_TWO = {"output_top_logprobs": [[[-0.1, 7, None], [-0.6, 9, None]], [[-0.3, 5, None], [-0.3, 6, None]], None]}


def test_a_choice_is_the_margin_of_the_two_best_tokens_and_the_rank_of_another() -> None:
    first = token_choice(TOP_TWO, at=0, token=9)
    assert first is not None and first.rank == 2
    assert first.margin == pytest.approx(0.5)
    assert getattr(token_choice(TOP_TWO, at=0, token=1234), "rank", None) == 3


def test_a_token_that_ties_with_the_best_ranks_behind_it() -> None:
    for token in (5, 6):
        assert token_choice(TOP_TWO, at=1, token=token) == TokenChoice(0.0, 2)


@pytest.mark.parametrize(
    "meta",
    [{}, {"output_top_logprobs": None}, {"output_top_logprobs": [[[None, 7, None], [-1.0, 8, None]]]}, TOP_TWO],
    ids=["absent", "null", "without a number", "not at this position"],
)
def test_a_choice_that_was_not_recorded_is_none(meta: dict[str, Any]) -> None:
    assert token_choice(meta, at=2 if meta is TOP_TWO else 0, token=8) is None


def shown(**block: Any) -> dict[str, Any]:
    """What a server says whose trace is sound, with parts of it replaced."""
    sound = {"version": "1", "sha": "0" * 64, "reviewed_as": "0.5.21", "override": False}
    state = {"enabled": True, "control": "on", "records": 9, "dropped": 0, "stopped": None}
    return {"internal_states": [{TRACE_BLOCK: sound | state | block}]}


def test_a_sound_trace_has_no_problem_before_and_after_the_warm_up() -> None:
    assert trace_problem(shown(records=0), enabled=True) is None
    assert trace_problem(shown(), enabled=True, warm=True) is None
    assert trace_problem(shown(enabled=False, control="off"), enabled=False, warm=True) is None


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        ({}, "has no `speckit_trace`"),
        ({"internal_states": [{TRACE_BLOCK: "?"}]}, "has no `speckit_trace`"),
        (shown(records=0), "recorded no iteration"),
        (shown(dropped=3, stopped="OSError: disk full", enabled=False), "dropped 3 iterations"),
        (shown(stopped="OSError: disk full", enabled=False), "stopped: OSError: disk full"),
        (shown(enabled=False, control="off"), "the trace is off and should not be; its control word is 'off'"),
    ],
)
def test_a_trace_that_proves_nothing_says_why(info: dict[str, Any], problem: str) -> None:
    assert problem in (trace_problem(info, enabled=True, warm=True) or "")


def test_a_trace_that_should_be_off_and_is_on_is_a_problem() -> None:
    assert "the trace is on and should not be" in (trace_problem(shown(), enabled=False) or "")


def test_the_plugin_is_named_with_its_review_and_an_override() -> None:
    assert trace_plugin(shown()) == TracePlugin("1", "0" * 64, "0.5.21", override=False)
    assert trace_plugin(shown(override=True, reviewed_as=None)) == TracePlugin("1", "0" * 64, None, override=True)
    assert trace_plugin({}) is None


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"torch": "2.11.0", "flashinfer-python": "0.6.12"}, (("flashinfer-python", "0.6.12"), ("torch", "2.11.0"))),
        (None, ()),
        ("torch 2.11.0", ()),
    ],
)
def test_the_plugin_tells_what_is_installed_beside_the_server(told: Any, found: tuple[tuple[str, str], ...]) -> None:
    plugin = trace_plugin(shown(packages=told))
    assert plugin is not None
    assert plugin.packages == found
