"""Which of the two throughputs a report draws: the steady window, or the whole run where there is no window at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kit.analysis import Comparison, LevelResult
from kit.stats import Estimate
from kit.verdict import SpeedSection

__all__ = ["Measure", "shown_measure"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One definition of throughput: its name in a table head, the warning that goes with it, and where it is found."""

    name: str
    warning: str
    is_window: bool
    throughput: Callable[[LevelResult], Estimate]
    ratio: Callable[[Comparison], Estimate]


_WINDOW = Measure(
    name="tok/s",
    warning="",
    is_window=True,
    throughput=lambda level: level.throughput_window,
    ratio=lambda comparison: comparison.ratio,
)
_WHOLE_RUN = Measure(
    name="tok/s (whole run)",
    warning=(
        "There is no steady window, so throughput here is that of the whole run, start and end included. It decides "
        "nothing; the ratio of two such numbers is shown without a word."
    ),
    is_window=False,
    throughput=lambda level: level.throughput_full_run,
    ratio=lambda comparison: comparison.ratio_full_run,
)


def shown_measure(speed: SpeedSection) -> Measure:
    """The window if any level has one."""
    has_window = any(level.throughput_window.point is not None for level in speed.levels)
    return _WINDOW if has_window else _WHOLE_RUN
