"""Which runs may be compared: in what they differ, and what the factor allows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.analysis import spec_of
from kit.compare import Factor, compare, differences
from kit.errors import ComparisonRefused
from kit.records import Launch, RunFacts
from tests.builders import build_run, build_spec, edit_launches
from tests.compare.runs import headed, on_backend, pair

GPU = {"name": "H200", "power.limit": "700 W", "pcie.link.gen.current": "5"}
HOST = {"cpu": "one", "cores": 8, "gpus": [GPU]}


def refused(first: RunFacts, second: RunFacts, factor: Factor) -> tuple[str, ...]:
    with pytest.raises(ComparisonRefused) as caught:
        compare(first, second, factor=factor)
    assert str(caught.value).count("\n") == len(caught.value.fields)
    return caught.value.fields


def test_two_backends_may_be_compared_in_their_backend_alone() -> None:
    found = differences(*pair(), factor=Factor.BACKEND)
    assert [str(one) for one in found.of_factor] == ['spec.server.attention_backend: "triton" | "flashinfer"']
    assert (found.refused, found.noted) == ((), ())
    for other in (Factor.DAY, Factor.HOST, Factor.SGLANG):
        assert refused(*pair(), other) == ('spec.server.attention_backend: "triton" | "flashinfer"',)


@pytest.mark.parametrize(
    ("section", "change", "field"),
    [
        ("server", {"context_length": 256, "attention_backend": "flashinfer"}, "spec.server.context_length: 512 | 256"),
        ("load", {"waves": 5}, "spec.load.waves: 4 | 5"),
        ("workload", {"max_output_tokens": 41}, "spec.workload.max_output_tokens: 40 | 41"),
        ("engine", {"sglang": "0.5.23"}, 'spec.engine.sglang: "0.5.15.post1" | "0.5.23"'),
        ("decision", {"noise_threshold": 0.03}, "spec.decision.noise_threshold: 0.02 | 0.03"),
    ],
)
def test_anything_else_refuses_and_is_named_with_both_values(
    section: str, change: dict[str, object], field: str
) -> None:
    first, _ = pair()
    arms = [arm.model_dump(mode="json") for arm in spec_of(first).arms]
    spec = build_spec(**{"server": {"attention_backend": "flashinfer"}, "arms": arms, section: change})
    assert field in refused(first, headed(build_run(spec), run_id="other"), Factor.BACKEND)


def test_titles_questions_and_host_expectations_are_free() -> None:
    other = on_backend("flashinfer", title="Another", question="Why?", host={"gpu": "NVIDIA H200"})
    assert differences(pair()[0], other, factor=Factor.BACKEND).refused == ()


def test_prompts_are_told_apart_by_their_content() -> None:
    first, second = pair()
    assert refused(first, headed(second, workload_hash="x" * 64), Factor.BACKEND) == (
        f'workload_sha256: "{"w" * 64}" | "{"x" * 64}"',
    )


def test_hardware_refuses_unless_the_host_is_the_factor() -> None:
    first, _ = pair()
    here = headed(first, host=HOST)
    there = headed(first, run_id="other", host=HOST | {"gpus": [{"name": "H100", "power.limit": "700 W"}]})
    assert refused(here, there, Factor.DAY) == ('host.gpus.0.name: "H200" | "H100"',)
    assert compare(here, there, factor=Factor.HOST).factor_fields != ()


def test_another_engine_on_another_host_is_two_factors() -> None:
    first, _ = pair()
    here = headed(first, host=HOST | {"packages": {"torch": "2.11.0"}})
    there = headed(first, run_id="other", host=HOST | {"cpu": "two", "packages": {"torch": "2.12.0"}})
    assert refused(here, there, Factor.HOST) == ('host.packages.torch: "2.11.0" | "2.12.0"',)


def test_what_is_installed_beside_the_server_belongs_to_the_version_of_sglang() -> None:
    first, _ = pair()
    here, there = (
        edit_launches(first, lambda one: _with(one, speckit_trace={"packages": {"torch": version}}))  # noqa: B023
        for version in ("2.11.0", "2.12.0")
    )
    there = headed(there, run_id="other")
    assert refused(here, there, Factor.DAY) == ('answered.torch: ["2.11.0"] | ["2.12.0"]',)
    assert differences(here, there, factor=Factor.SGLANG).refused == ()


@pytest.mark.parametrize("factor", [Factor.BACKEND, Factor.SGLANG])
def test_another_backend_or_version_may_need_another_image(factor: Factor) -> None:
    first, _ = pair()
    here, there = (headed(first, host=HOST | {"image": {"id": name}, "engine": {"docker": name}}) for name in "ab")
    assert [one.field for one in differences(here, there, factor=factor).of_factor] == ["host.image.id"]
    assert [one.field for one in differences(here, there, factor=factor).noted] == ["host.engine.docker"]
    assert [one.field for one in differences(here, there, factor=Factor.DAY).refused] == ["host.image.id"]


def test_a_kernel_build_and_the_state_of_the_bus_are_noted_and_refuse_nothing() -> None:
    first, _ = pair()
    here = headed(first, host=HOST | {"platform": "Linux-1", "kit_commit": "a"})
    idle = [GPU | {"pcie.link.gen.current": "1"}]
    there = headed(first, run_id="other", host=HOST | {"platform": "Linux-2", "kit_commit": "b", "gpus": idle})
    noted = compare(here, there, factor=Factor.DAY).noted
    assert [one.field for one in noted] == ["host.gpus.0.pcie.link.gen.current", "host.platform", "host.kit_commit"]


def test_a_factor_that_does_not_differ_is_refused() -> None:
    first, _ = pair()
    with pytest.raises(ComparisonRefused, match="is the same in both runs"):
        compare(first, headed(first, run_id="other"), factor=Factor.BACKEND)


def test_a_run_is_not_compared_with_itself() -> None:
    with pytest.raises(ComparisonRefused, match="both are run run-triton"):
        compare(pair()[0], pair()[0], factor=Factor.DAY)


def test_what_the_servers_made_of_the_factor_is_shown_and_refuses_a_mere_repetition() -> None:
    first, second = pair()
    second = edit_launches(second, lambda one: _with(one, max_total_num_tokens=90_000))
    shown = compare(first, second, factor=Factor.BACKEND).consequences
    assert {one.flag for one in shown} == {"max_total_num_tokens"}
    again = edit_launches(headed(first, run_id="other"), lambda one: _with(one, max_total_num_tokens=90_000))
    assert refused(first, again, Factor.DAY)[0] == "server of baseline: max_total_num_tokens: 100000 | 90000"


def _with(launch: Launch, **info: Any) -> Launch:
    return replace(launch, server_info={**(launch.server_info or {}), **info})
