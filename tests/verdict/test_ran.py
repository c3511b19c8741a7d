"""What ran, beside the numbers: versions come from where the server runs, and two of one package are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kit.records import Launch, RunFacts
from kit.verdict import judge
from tests.builders import edit_launches, shared_run


def beside(facts: RunFacts, arm: str, **packages: str) -> RunFacts:
    """`facts` in which the servers of `arm` tell what is installed beside them."""

    def told(launch: Launch) -> Launch:
        block: dict[str, Any] = {"version": "1", "sha": "0" * 64, "packages": packages}
        return replace(
            launch, server_info={**(launch.server_info or {}), "internal_states": [{"speckit_trace": block}]}
        )

    return edit_launches(facts, told, arm=arm)


def test_versions_are_those_beside_the_server_and_two_of_one_package_are_both_shown() -> None:
    facts = beside(shared_run(), "baseline", torch="2.11.0", triton="3.6.0", sglang="0.5.15.post1")
    facts = beside(facts, "eagle3_k3", torch="2.11.0", triton="3.7.0")
    engine = {one.name: one.value for one in judge(facts).what_ran.engine}
    assert engine["torch, beside the server"] == "2.11.0"
    assert engine["triton, beside the server"] == "3.6.0, 3.7.0"
    assert "sglang, beside the server" not in engine
