"""SGLang's adaptive draft length, as in 0.5.15: a ladder of candidates for each batch size, climbed by an average.

Each slot owns an exponential average of accepted drafts per row and a current K. A batch uses the slot with the
largest key that is not above its size, so all its requests share one K. The controller is fed every processed
result, ghost rows included, and learns of a result one launch late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["AdaptiveController", "Rung", "Switch", "candidates", "parse_ladder"]


@dataclass(frozen=True, slots=True)
class Rung:
    """Settings of one batch-size slot; the names are SGLang's."""

    candidate_steps: tuple[int, ...]
    ema_alpha: float = 0.2
    update_interval: int = 5
    warmup_batches: int = 10
    up_hysteresis: float = 0.0
    down_hysteresis: float = -0.25


def parse_ladder(config: Mapping[str, Any]) -> dict[int, Rung]:
    """The slots of an adaptive configuration: keys that are numbers are slots, the others defaults for all.

    Raises ValueError for a configuration without slots, as SGLang does with the flat form of its older documents.
    """
    knobs = {knob.name for knob in fields(Rung)}
    shared = {key: value for key, value in config.items() if key in knobs}
    slots = {int(key): shared | dict(value) for key, value in config.items() if key.isdigit()}
    if not slots:
        raise ValueError('speculative_adaptive_config needs at least one batch-size slot, for example "1"')
    return {size: _rung(slot, knobs) for size, slot in sorted(slots.items())}


def _rung(slot: Mapping[str, Any], knobs: set[str]) -> Rung:
    known = {key: value for key, value in slot.items() if key in knobs}
    return Rung(**known | {"candidate_steps": tuple(sorted(slot["candidate_steps"]))})


def candidates(ladder: Mapping[int, Rung]) -> tuple[int, ...]:
    """Every K that the ladder can choose, smallest first."""
    return tuple(sorted({step for rung in ladder.values() for step in rung.candidate_steps}))


@dataclass(frozen=True, slots=True)
class Switch:
    """The slot of that batch size changed its K after an update of its average."""

    before: int
    after: int
    ema: float
    slot: int


@dataclass(slots=True)
class _Slot:
    size: int
    rung: Rung
    current: int
    ema: float = field(init=False)
    batches: int = 0

    def __post_init__(self) -> None:
        self.ema = float(self.current - 1)

    def update(self, mean_accepted: float) -> Switch | None:
        self.batches += 1
        if self.current > 0:
            self.ema += self.rung.ema_alpha * (mean_accepted - self.ema)
        if self.batches <= self.rung.warmup_batches or self.batches % self.rung.update_interval:
            return None
        before, self.current = self.current, self._target()
        return Switch(before, self.current, self.ema, self.size) if before != self.current else None

    def _target(self) -> int:
        """The candidate to use from now on. K = 0 proposes nothing, so it cannot be judged: always probe above it."""
        steps = self.rung.candidate_steps
        at = steps.index(self.current)
        if self.current == 0:
            return steps[min(at + 1, len(steps) - 1)]
        lower = at
        # The step below 1 is 0, whose bound is that of 1: nobody accepts half a draft less than none.
        while lower and self.ema <= max(steps[lower - 1], 1) - 0.5 + self.rung.down_hysteresis:
            lower -= 1
        if lower < at:
            return steps[lower]
        while at + 1 < len(steps) and self.ema > steps[at] - 0.5 + self.rung.up_hysteresis:
            at += 1
        return steps[at]


class AdaptiveController:
    """Chooses K for every batch. A slot of which `launch_steps` is no candidate starts in its middle."""

    def __init__(self, ladder: Mapping[int, Rung], *, launch_steps: int) -> None:
        self._slots = {
            size: _Slot(size, rung, launch_steps if launch_steps in rung.candidate_steps else _middle(rung))
            for size, rung in sorted(ladder.items())
        }

    def depth(self, rows: int) -> int:
        """K for a batch of that many rows."""
        return self._slot(rows).current

    def observe(self, accepted: Sequence[int]) -> Switch | None:
        """Feed the accepted drafts of all rows of one processed result; the switch it caused, if any."""
        return self._slot(len(accepted)).update(sum(accepted) / len(accepted))

    def _slot(self, rows: int) -> _Slot:
        smallest = next(iter(self._slots))
        return self._slots[max((size for size in self._slots if size <= rows), default=smallest)]


def _middle(rung: Rung) -> int:
    return rung.candidate_steps[len(rung.candidate_steps) // 2]
