"""Did every cell get the same clock, and the GPU for itself?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kit.analysis import analyse
from kit.checks import Code, Doubt, Evidence, Severity, evidence_of, gpu
from kit.records import GpuSample, Phase, RunFacts
from tests.builders import shared_run

Check = Callable[[Evidence], Iterator[Doubt]]
CHECKS = (gpu.gpu_slowed, gpu.gpu_shared, gpu.gpu_clock_differs)


def sampled(arm: str | None = None, **told: int | None) -> RunFacts:
    """The shared run on a GPU at a steady clock; launches of `arm` are told otherwise."""
    facts = shared_run()
    launches = {cell.cell: facts.launches[cell.launch].arm for cell in facts.cells}
    samples = tuple(
        replace(GpuSample(rep.repetition, 0, rep.started_ns, 1980, slowdown=0, processes=1), **mine)  # type: ignore[arg-type]
        for rep in facts.repetitions
        if rep.phase is Phase.TIMED
        for mine in (told if launches[rep.cell] == arm else {},)
    )
    return replace(facts, gpu_samples=samples)


def found(check: Check, facts: RunFacts) -> list[Doubt]:
    return list(check(evidence_of(facts, analyse(facts))))


@pytest.mark.parametrize("check", CHECKS)
def test_a_gpu_at_work_undisturbed_raises_no_doubt(check: Check) -> None:
    assert found(check, sampled()) == []
    assert found(check, shared_run()) == []
    assert found(check, sampled("eagle3_k3", sm_mhz=None, slowdown=None, processes=None)) == []


@pytest.mark.parametrize(
    ("mask", "severity", "words"),
    [
        (0x08, Severity.INVALID, "hardware slowdown"),
        (0x48, Severity.INVALID, "hardware slowdown, hardware thermal slowdown"),
        (0x84, Severity.INVALID, "external power brake"),
        (0x04, Severity.DOUBT, "power limit"),
        (0x24, Severity.DOUBT, "power limit, software thermal slowdown"),
    ],
)
def test_a_gpu_that_was_slowed_down_is_named_with_the_reason(mask: int, severity: Severity, words: str) -> None:
    doubts = found(gpu.gpu_slowed, sampled("eagle3_k3", slowdown=mask))
    assert {(one.code, one.severity, one.arm) for one in doubts} == {(Code.GPU_SLOWED, severity, "eagle3_k3")}
    assert all(one.message.endswith(words) for one in doubts)


@pytest.mark.parametrize("mask", [0x00, 0x01, 0x02, 0x10])
def test_idling_and_clocks_set_by_the_owner_are_no_slowdown(mask: int) -> None:
    assert found(gpu.gpu_slowed, sampled("eagle3_k3", slowdown=mask)) == []


def test_another_process_on_the_gpu_makes_its_cells_invalid() -> None:
    doubts = found(gpu.gpu_shared, sampled("eagle3_k1", processes=3))
    assert {(one.code, one.severity, one.arm) for one in doubts} == {(Code.GPU_SHARED, Severity.INVALID, "eagle3_k1")}


@pytest.mark.parametrize(("clock", "doubted"), [(1980, False), (1950, False), (1900, True), (2100, True)])
def test_an_arm_at_another_clock_than_its_baseline_is_doubted(clock: int, doubted: bool) -> None:
    doubts = found(gpu.gpu_clock_differs, sampled("eagle3_k3", sm_mhz=clock))
    assert {one.arm for one in doubts} == ({"eagle3_k3"} if doubted else set())
