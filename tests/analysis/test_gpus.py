"""Samples of the GPUs become ranges of clock, power and temperature, and energy a token, or the reason for none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.analysis.gpus import Extent, energies, gpu_conditions
from kit.analysis.index import Index
from kit.records import GpuSample, Origin, Phase, Repetition, RunFacts
from tests.builders import shared_run


def timed(facts: RunFacts) -> list[Repetition]:
    return [one for one in facts.repetitions if one.phase is Phase.TIMED]


def sampled(*, millijoules_a_token: int = 50, gpus: int = 1, **told: int | None) -> RunFacts:
    """The shared run, two samples a GPU and timed pass; what one GPU took is `millijoules_a_token` of all tokens."""
    facts = shared_run()
    samples = []
    for rep in timed(facts):
        tokens = sum(one.completion_tokens or 0 for one in facts.requests if one.repetition == rep.repetition)
        for energy in (1000, 1000 + millijoules_a_token * tokens):
            first = GpuSample(rep.repetition, 0, rep.started_ns, 1980, power_mw=300_000, energy_mj=energy)
            first = replace(first, **told)  # type: ignore[arg-type]
            samples += [replace(first, gpu=gpu) for gpu in range(gpus)]
    return replace(facts, gpu_samples=tuple(samples))


def test_every_timed_cell_has_the_range_of_its_samples() -> None:
    facts = sampled()
    slower = tuple(replace(one, sm_mhz=1500) for one in facts.gpu_samples[:1])
    found = gpu_conditions(Index(replace(facts, gpu_samples=slower + facts.gpu_samples[1:])))
    assert len(found) == len(timed(facts))
    assert found[0].sm_mhz == Extent(1500, 1740, 1980)
    assert {one.sm_mhz for one in found[1:]} == {Extent(1980, 1980, 1980)}
    assert {one.power_w for one in found} == {Extent(300, 300, 300)}
    assert {one.temperature_c for one in found} == {None}


@given(millijoules=st.integers(1, 5000), gpus=st.integers(1, 3))
def test_energy_a_token_is_what_all_gpus_took(millijoules: int, gpus: int) -> None:
    found = energies(Index(sampled(millijoules_a_token=millijoules, gpus=gpus)))
    assert {one.arm for one in found} == {"baseline", "eagle3_k1", "eagle3_k3"}
    for one in found:
        assert one.joules_per_token.point == pytest.approx(gpus * millijoules / 1000)
        assert one.joules_per_token.n == 3


def test_a_gpu_that_tells_no_energy_leaves_none() -> None:
    assert energies(Index(sampled(energy_mj=None))) == ()


def test_samples_of_other_passes_count_for_nothing() -> None:
    facts = sampled()
    other = tuple(replace(one, repetition=9_999_999) for one in facts.gpu_samples)
    assert gpu_conditions(Index(replace(facts, gpu_samples=other))) == ()


def test_a_simulated_server_used_no_gpu() -> None:
    facts = sampled()
    simulated = replace(facts, header=replace(facts.header, origin=Origin.SIMULATED))
    assert gpu_conditions(Index(simulated)) == () == energies(Index(simulated))
