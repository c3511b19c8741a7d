"""Launches that die: too little memory, an engine's bug and two wrong configurations are four different things."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kit.diagnosis import Cause, diagnose
from kit.errors import SpecError
from kit.pipeline import preview
from kit.verdict import Heading, judge
from tests.builders import shared_run
from tests.field.inputs import failed_launches, objects, refusal, spec_file, text

LOGS = {name: text("F09", f"{name}.log") for name in "abcd"}

# The same four kinds in other versions' words, with other values.
LOGS |= {
    "a, second draft pool": (
        "[2026-02-01 09:00:00 TP0] Load weight end. avail mem=40.10 GB\n"
        "[2026-02-01 09:00:05 TP0] KV Cache is allocated. #tokens: 512000, K size: 18.00 GB, V size: 18.00 GB\n"
        "[2026-02-01 09:00:06 TP0] Load weight begin. avail mem=3.90 GB\n"
        "[2026-02-01 09:00:08 TP0] Load weight end. avail mem=2.10 GB\n"
        "[2026-02-01 09:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "memory_pool.py", line 88, in _create_buffers\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.93 GiB. GPU 0 has 1.95 GiB free.\n"
    ),
    "b, wider ladder": (
        "[2026-02-01 09:00:00] Capture cuda graph begin, bs=16, steps=15\n"
        "[2026-02-01 09:00:03] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "cuda_graph_runner.py", line 12, in capture\n'
        "AssertionError: shared logits buffer has 64 rows, caller needs 256\n"
    ),
    "c, two candidates": "ValueError: --speculative-num-steps=4 not in candidate_steps [2, 6]\n",
    "d, keys that are words": (
        "ValueError: speculative_adaptive_config needs an integer-string BS key; keys: ['small', 'large']\n"
    ),
}
EXPECTED = {
    "a": (Cause.GPU_MEMORY_KV_POOL, "1.15 GiB", "--mem-fraction-static or --max-total-tokens in every arm"),
    "a, second draft pool": (Cause.GPU_MEMORY_KV_POOL, "2.93 GiB", "the draft has its own pool beside the target's"),
    "b": (Cause.ADAPTIVE_BUFFER, "engine bug", "report it upstream with the build"),
    "b, wider ladder": (Cause.ADAPTIVE_BUFFER, "64 rows, 256 needed", "name the arm after it"),
    "c": (Cause.ADAPTIVE_LADDER, "start 5, candidates [1, 3, 7]", "to one of the candidates"),
    "c, two candidates": (Cause.ADAPTIVE_LADDER, "start 4, candidates [2, 6]", "to one of the candidates"),
    "d": (Cause.ADAPTIVE_CONFIG, "a form this SGLang does not read", '{"1": {"candidate_steps": [1, 3, 7]}}'),
    "d, keys that are words": (Cause.ADAPTIVE_CONFIG, "a form this SGLang does not read", "slots by batch size"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_death_has_its_class_its_values_and_its_way_out(name: str) -> None:
    cause, in_title, in_advice = EXPECTED[name]
    found = diagnose(LOGS[name], exit_code=1)
    assert found.cause is cause
    assert in_title in found.title
    assert in_advice in found.advice


@pytest.mark.parametrize("name", EXPECTED)
def test_a_launch_that_died_is_not_measured_and_fails_no_gate(name: str) -> None:
    verdict = judge(failed_launches(shared_run(), arm="eagle3_k3", log=LOGS[name], exit_code=1))
    (missing,) = (one for one in verdict.not_measured if one.what == "arm eagle3_k3")
    assert missing.reason == f"{diagnose(LOGS[name]).title}; {diagnose(LOGS[name]).advice}"
    assert Heading.GATE_FAILED not in verdict.headings
    assert "eagle3_k3" not in {cell.arm for cell in verdict.doubts.cells}


def test_an_engines_bug_is_told_from_a_users_error() -> None:
    causes = {name: diagnose(LOGS[name]).cause for name in "bcd"}
    assert len(set(causes.values())) == 3


@pytest.mark.parametrize(("start", "ladder"), [(5, [1, 3, 7]), (4, [2, 6])], ids=["field", "variant"])
def test_a_start_outside_its_own_ladder_is_refused_before_anything_starts(start: int, ladder: list[int]) -> None:
    arm = {"kind": "adaptive", "name": "adaptive", "num_steps": start, "candidates": {"1": ladder}}
    assert f"{start} is not the largest candidate {ladder[-1]}" in refused(arm)


@pytest.mark.parametrize("steps", [3, 5])
def test_a_start_that_sglangs_ladder_does_not_end_with_is_refused_before_anything_starts(
    steps: int, tmp_path: Path
) -> None:
    baseline, adaptive = {"kind": "baseline", "name": "baseline"}, {"kind": "adaptive", "name": "adaptive"}
    assert preview(spec_file(tmp_path, arms=[baseline, adaptive])).plan.launches
    source = spec_file(tmp_path, arms=[baseline, adaptive | {"num_steps": steps}])
    with pytest.raises(SpecError, match=rf"num_steps {steps} is not the largest of .* \[0, 1, 3, 7\]: use 7"):
        preview(source)


def test_the_flat_form_of_a_ladder_cannot_be_written_into_a_spec() -> None:
    flat = objects("F09", "d_adaptive.json")["candidate_steps"]
    assert "candidates" in refused({"kind": "adaptive", "name": "adaptive", "candidates": flat})
    named = {"kind": "adaptive", "name": "adaptive", "candidates": {"candidate_steps": flat}}
    assert "not a batch size: use an integer in quotes" in refused(named)
    assert objects("F09", "c_adaptive.json") == {"1": {"candidate_steps": flat}}


def test_a_file_of_ones_own_cannot_bypass_the_ladder_of_the_spec() -> None:
    flags = {"extra_flags": {"speculative-adaptive-config": "old.json"}}
    assert "already follows from other fields" in refused({"kind": "adaptive", "name": "adaptive", "server": flags})


def refused(arm: Mapping[str, object]) -> str:
    """Why a spec with a baseline and this arm is refused."""
    return refusal(arms=[{"kind": "baseline", "name": "baseline"}, arm])
