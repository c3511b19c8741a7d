"""Sampling GPUs: which ones are watched, and that a host without a driver is told apart from one that is idle."""

from __future__ import annotations

import pytest

from kit.provenance import GpuWatch
from kit.provenance.gpu import visible_gpus


@pytest.mark.parametrize(
    ("environment", "watched"),
    [
        (None, (0, 1, 2, 3)),
        ("1", (1,)),
        ("2, 0", (2, 0)),
        ("", ()),
        ("GPU-5d3c", (0, 1, 2, 3)),
        ("1,9", (1,)),
    ],
)
def test_only_gpus_that_the_server_sees_are_watched(environment: str | None, watched: tuple[int, ...]) -> None:
    assert visible_gpus(environment, 4) == watched


def test_a_host_without_a_driver_has_no_samples_and_no_thread_left() -> None:
    with GpuWatch(7) as watch:
        pass
    assert not watch._thread.is_alive()
    assert all(sample.repetition == 7 for sample in watch.samples)
