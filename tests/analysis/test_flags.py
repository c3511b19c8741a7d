"""Effective flags are compared whole; what is neither the arm, nor declared, nor harmless is unfair."""

from __future__ import annotations

from typing import Any

import pytest

from kit.analysis import FlagClass, FlagDifference, arm_server_infos, flag_differences
from kit.spec import Spec
from tests.builders import build_spec, eagle3, shared_run

BASE: dict[str, Any] = {"attention_backend": "triton", "speculative_algorithm": None}


def differences(spec: Spec, arm: dict[str, Any], baseline: dict[str, Any] = BASE) -> dict[str, FlagClass]:
    found = flag_differences(spec, {"baseline": baseline, "eagle3_k1": arm})
    return {difference.flag: difference.flag_class for difference in found}


@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("speculative_num_steps", 1, FlagClass.INTENDED),
        ("max_speculative_num_draft_tokens", 2, FlagClass.INTENDED),
        ("port", 30001, FlagClass.HARMLESS),
        ("memory_usage", {"graph": 0.2}, FlagClass.HARMLESS),
        ("avg_accept", 2.0, FlagClass.HARMLESS),
        ("attention_backend", "fa3", FlagClass.UNFAIR),
        ("page_size", 64, FlagClass.UNFAIR),
        ("max_running_requests", 48, FlagClass.UNFAIR),
        ("max_total_num_tokens", 1000, FlagClass.UNFAIR),
        ("cuda_graph_config", {"decode": {"bs": [1, 2]}}, FlagClass.UNFAIR),
        ("tp_size", 8, FlagClass.UNFAIR),
        ("disable_custom_all_reduce", True, FlagClass.UNFAIR),
        ("quantization", "fp8", FlagClass.UNFAIR),
        ("a_flag_of_next_year", True, FlagClass.UNFAIR),
        ("port_range", 3, FlagClass.UNFAIR),
    ],
)
def test_each_flag_has_its_class(flag: str, value: object, expected: FlagClass) -> None:
    found = differences(build_spec(), BASE | {flag: value})
    assert list(found.values()) == [expected]


def test_equal_servers_do_not_differ() -> None:
    assert differences(build_spec(), dict(BASE)) == {}


def test_the_scheduler_process_wins_over_the_launch_values() -> None:
    found = differences(build_spec(), BASE | {"internal_states": [{"attention_backend": "fa3"}]})
    assert found == {"attention_backend": FlagClass.UNFAIR}


def test_nested_values_are_compared_leaf_by_leaf() -> None:
    one, other = {"decode": {"bs": [1, 2], "max_bs": 2}}, {"decode": {"bs": [1, 4], "max_bs": 2}}
    (found,) = flag_differences(build_spec(), {"baseline": BASE | {"cuda": one}, "eagle3_k1": BASE | {"cuda": other}})
    assert found == FlagDifference("eagle3_k1", "baseline", "cuda.decode.bs", "[1, 4]", "[1, 2]", FlagClass.UNFAIR)


def test_a_declared_difference_is_intended_and_so_is_what_follows_from_it() -> None:
    overrides = {"attention_backend": "fa3", "extra_flags": {"schedule-policy": "lpm"}}
    arms = [{"kind": "baseline", "name": "baseline"}, eagle3(1, server=overrides)]
    changed = {"attention_backend": "fa3", "decode_attention_backend": "fa3", "schedule_policy": "lpm"}
    found = differences(build_spec(arms=arms), BASE | changed)
    assert set(found.values()) == {FlagClass.INTENDED}
    assert len(found) == 3


def test_a_second_draft_is_unfair_to_the_first() -> None:
    infos = {
        "baseline": BASE,
        "eagle3_k1": BASE | {"speculative_draft_model_revision": "aaa"},
        "eagle3_k3": BASE | {"speculative_draft_model_revision": "bbb"},
    }
    unfair = [d for d in flag_differences(build_spec(), infos) if d.flag_class is FlagClass.UNFAIR]
    assert [(d.arm, d.baseline, d.flag) for d in unfair] == [
        ("eagle3_k3", "eagle3_k1", "speculative_draft_model_revision")
    ]


def test_an_arm_that_nobody_saw_takes_no_part() -> None:
    assert flag_differences(build_spec(), {"baseline": None, "eagle3_k1": BASE}) == ()


def test_every_arm_is_described_by_its_first_launch() -> None:
    infos = arm_server_infos(shared_run().launches)
    assert set(infos) == {"baseline", "eagle3_k1", "eagle3_k3"}
    assert all(info is not None for info in infos.values())
