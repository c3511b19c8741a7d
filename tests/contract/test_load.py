from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from kit.contract import load, versions
from kit.errors import SpecError


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SpecError, match=r"no contract for SGLang 0\.5\.99, only for 0\.5\.15\.post1, 0\.5\.21, 0\.5\.23"
    ):
        load("0.5.99")


def test_versions_are_listed_oldest_first() -> None:
    assert versions() == ("0.5.15.post1", "0.5.21", "0.5.23")


def test_a_contract_cannot_be_changed() -> None:
    contract = load("0.5.21")
    with pytest.raises(dataclasses.FrozenInstanceError):
        contract.version = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        contract.flags["--x"] = contract.flags["--port"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("version", "ladder", "sized_for", "order"),
    [
        ("0.5.15.post1", [1, 3, 7], "launch steps", "length"),
        ("0.5.21", [1, 3, 5, 7], "largest candidate", "nan"),
        ("0.5.23", [1, 3, 5, 7], "largest candidate", "nan"),
    ],
)
def test_what_differs_between_versions_is_in_the_facts(
    version: str, ladder: list[int], sized_for: str, order: str
) -> None:
    contract = load(version)
    assert contract.adaptive_ladder["1"]["candidate_steps"] == ladder
    assert contract.ladder == (0, *ladder)
    assert contract.facts["adaptive_logits_rows"] == {"sized_for": sized_for}
    finish_order = contract.facts["finish_order"]
    assert isinstance(finish_order, list) and finish_order[1] == order


@pytest.mark.parametrize("version", versions())
def test_what_speculation_changes_without_being_asked_is_in_the_facts(version: str) -> None:
    defaults = load(version).facts["speculative_defaults"]
    assert isinstance(defaults, dict)
    assert defaults["max_running_requests"] == 48
    assert defaults["steps_topk_draft_tokens"]["LlamaForCausalLM"] == [5, 4, 8]


@pytest.mark.parametrize("version", versions())
def test_speculative_counts_have_three_generations_of_names(version: str) -> None:
    speculative = load(version).facts["speculative_meta_info"]
    assert isinstance(speculative, dict)
    assert speculative["names"]["correct_drafts"] == [
        "spec_num_correct_drafts",
        "spec_accepted_drafts",
        "spec_accept_token_num",
    ]
    assert ("spec_accepted_drafts" in speculative["sent"]) is (version == "0.5.15.post1")


@pytest.mark.parametrize("version", versions())
def test_the_plugin_group_and_the_endpoints_a_benchmark_uses_are_there(version: str) -> None:
    contract = load(version)
    assert contract.plugin_group == "sglang.srt.plugins"
    assert contract.endpoints["/generate"] == ("POST", "PUT")
    assert {"/server_info", "/model_info", "/flush_cache", "/health", "/v1/loads"} <= contract.endpoints.keys()


@pytest.mark.parametrize("version", versions())
def test_the_trace_patch_reviewed_the_very_functions_that_the_contract_was_extracted_from(version: str) -> None:
    path = Path(__file__).parents[2] / "docker" / "trace" / "speckit_trace" / "known.json"
    reviewed = json.loads(path.read_text(encoding="utf-8"))[version]
    hooks = load(version).hooks
    assert {name: hooks[name].sha256 for name in reviewed} == reviewed
