"""The self-test keeps what holds, misses what does not, and few runs never condemn."""

from __future__ import annotations

import pytest

from kit.selftest import Result, calibration_page, result_lines
from kit.selftest.cases import CASES
from kit.selftest.claims import Band
from kit.selftest.replicate import replicate, run_selftest, truth_of

COVERAGE = Band(0.92, 0.98, "the interval holds the truth")


@pytest.mark.parametrize(
    ("runs", "held", "kept"),
    [
        (500, 475, True),
        (500, 440, False),  # 88 % of many runs is too little
        (500, 500, False),  # so is an interval that never misses
        (20, 17, True),  # few runs do not refute the band
        (20, 8, False),
        (0, 0, False),
    ],
)
def test_a_claim_is_kept_when_its_share_lies_in_the_band_or_few_runs_do_not_refute_it(
    runs: int, held: int, kept: bool
) -> None:
    assert Result("speed", "ratio", COVERAGE, runs, held).kept is kept


def test_every_claim_of_the_speed_world_has_an_outcome_in_two_runs() -> None:
    case = CASES[0]
    truth = truth_of(case, runs=3)
    claims = {outcome.claim for seed in (1, 2) for outcome in replicate(case.name, truth, seed)}
    assert claims == set(case.bands)


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.name)
def test_every_other_world_decides_its_claims_in_one_run(case: object) -> None:
    one = next(known for known in CASES if known is case)
    outcomes = list(replicate(one.name, truth_of(one), 1))
    assert {outcome.claim for outcome in outcomes} <= set(one.bands)
    assert outcomes


@pytest.mark.slow
def test_the_fast_subset_keeps_every_claim() -> None:
    results = list(run_selftest(replications=8, seed=1, jobs=2))
    assert [f"{one.case}: {one.claim}" for one in results if not one.kept] == []


def test_the_page_names_seeds_bands_and_what_was_missed() -> None:
    results = [
        Result("speed", "ratio at 2", COVERAGE, 500, 475),
        Result("speed", "crossover", COVERAGE, 500, 300),
    ]
    page = calibration_page(results, seed=7, replications=500)
    assert "Seeds 7 to 506" in page
    assert "| 500 | 0.950 [0.927, 0.967] | 92 to 98 % | yes |" in page
    assert "**no**" in page
    assert [line.split()[0] for line in result_lines(results)] == ["ok", "MISS"]
