"""The timed server, one window against it, and the limits that a generator is held against."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from kit.cli import main
from kit.load import Exchange, Job
from kit.load.metronome import Beat, Pattern, started
from kit.load.selfcheck import LoadCheck, missed
from kit.load.trial import Figures, attempt, medians, own
from tests.load.bench.peers import bare, httpx_per_worker

GOOD = Figures(96, 1.5, 23.0, 0.998, 0.1, 0.4)


@pytest.mark.parametrize("pattern", Pattern)
@pytest.mark.parametrize("sender", [own, bare, httpx_per_worker])
def test_every_candidate_gets_every_byte_at_the_beat(pattern: Pattern, sender: object) -> None:
    beat = Beat(pattern, chunks=6, interval_s=0.01)
    with started(beat) as url:
        figures = asyncio.run(attempt(sender, url, beat, streams=4, rounds=3))  # type: ignore[arg-type]
    assert figures.requests == 12
    assert figures.cpu_ms_per_request > 0
    assert 0.1 < figures.fraction_of_ideal < 1.2
    assert 0 <= figures.ttft_error_ms <= figures.ttft_error_p99_ms


def test_a_reader_that_loses_bytes_is_found_out() -> None:
    async def lossy(url: str, jobs: Sequence[Job], streams: int) -> list[Exchange]:
        exchanges = await own(url, jobs, streams)
        return [replace(each, pieces=each.pieces[:-2]) for each in exchanges]

    beat = Beat(Pattern.STAGGERED, chunks=4, interval_s=0.005)
    with started(beat) as url, pytest.raises(ValueError, match="of 4 events"):
        asyncio.run(attempt(lossy, url, beat, streams=1, rounds=1))


def test_medians_are_taken_field_by_field_and_requests_are_added() -> None:
    windows = [replace(GOOD, ttft_error_ms=value) for value in (0.3, 0.1, 9.0)]
    assert medians(windows) == replace(GOOD, requests=288, ttft_error_ms=0.3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"fraction_of_ideal": 0.97}, ["97.0% of the ideal rate"]),
        ({"ttft_error_ms": 0.7}, ["median TTFT error 0.70 ms"]),
        ({"ttft_error_p99_ms": 3.0, "fraction_of_ideal": 0.5}, ["50.0% of the ideal rate", "TTFT error p99 3.00 ms"]),
    ],
)
def test_each_limit_that_does_not_hold_is_named_with_its_value(change: dict[str, Any], words: list[str]) -> None:
    found = list(missed(replace(GOOD, **change)))
    assert [line.partition(";")[0] for line in found] == words


@pytest.mark.parametrize(("misses", "code"), [((), 0), (("too slow",), 1)])
def test_the_command_fails_where_the_generator_falls_short(
    misses: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = LoadCheck(Pattern.LOCKSTEP, 250, 3, GOOD, misses)
    monkeypatch.setattr("kit.cli.load.check_load", lambda *, levels: iter([made]))
    result = CliRunner().invoke(main, ["selftest", "--load"])
    assert result.exit_code == code
    assert "250 streams, lockstep: 99.8% of the ideal rate" in result.output
    assert ("falls short at 250 lockstep streams" in result.output) == bool(misses)
