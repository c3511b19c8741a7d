"""What a measurement of a world should find: noise-free closed loops in virtual time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kit.standin.engine import Engine, Limits, Request, Speculation
from kit.standin.text import EOS
from kit.standin.world import World
from kit.units import Tokens, TokensPerSecond

__all__ = ["Job", "Truth", "jobs", "simulate", "truth"]

_GRID = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 28, 32)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt (token ids) and how much is asked for."""

    prompt: tuple[int, ...]
    max_new_tokens: Tokens
    ignore_eos: bool = True


@dataclass(frozen=True, slots=True)
class Truth:
    """Tokens per second of each arm at each concurrency, and where each arm stops beating the first one."""

    throughput: Mapping[str, Mapping[int, TokensPerSecond]]
    crossover: Mapping[str, float | None]


def jobs(
    count: int, *, seed: int = 0, prompt_tokens: Tokens = 40, shortest: Tokens = 24, longest: Tokens = 48
) -> tuple[Job, ...]:
    """`count` prompts with output lengths uniform between the two bounds."""
    return tuple(
        Job(
            tuple(range(1 + 977 * (seed * count + i), 1 + 977 * (seed * count + i) + prompt_tokens)),
            shortest + (i * 7919) % (longest - shortest + 1),
        )
        for i in range(count)
    )


def simulate(
    world: World,
    *,
    speculation: Speculation | None,
    concurrency: int,
    work: Sequence[Job],
    limits: Limits | None = None,
) -> TokensPerSecond:
    """Output tokens per second of the steady window of a closed loop without noise.

    The window of method.md 5.1: from the first moment with `concurrency` requests in flight to the last one.
    """
    engine = Engine(world, speculation=speculation, limits=limits or Limits(), launch_seed=None)
    pending = [_request(world, job, index, speculation) for index, job in enumerate(work)]
    pending.reverse()
    for _ in range(min(concurrency, len(pending))):
        engine.submit(pending.pop())
    now, tokens, last = 0.0, 0, 0.0
    counted = 0
    full = True
    while (iteration := engine.step()) is not None:
        now += iteration.duration_s
        tokens += sum(row.request.produced - row.before for row in iteration.rows if not row.ghost)
        for _ in iteration.finished:
            if full:
                last, counted = now, tokens
            if pending:
                engine.submit(pending.pop())
            else:
                full = False
    return counted / last


def _request(world: World, job: Job, index: int, speculation: Speculation | None) -> Request:
    text = world.answer(job.prompt, length=job.max_new_tokens + 16, speculates=speculation is not None)
    return Request(
        rid=f"{index:06d}",
        prompt_tokens=len(job.prompt),
        text=text,
        max_new_tokens=job.max_new_tokens,
        stop_at=None if job.ignore_eos else text.first(frozenset({EOS})),
    )


def truth(
    world: World, *, arms: Mapping[str, Speculation | None], work: Sequence[Job], grid: Sequence[int] = _GRID
) -> Truth:
    """Throughput of every arm on a grid of concurrencies; the crossover is interpolated in the log of both.

    The first arm is the baseline. A crossover is None when the arm never stops winning, or never wins.
    """
    throughput = {
        name: {level: simulate(world, speculation=arm, concurrency=level, work=work) for level in grid}
        for name, arm in arms.items()
    }
    baseline, *others = throughput
    ratios = {name: [math.log(throughput[name][c] / throughput[baseline][c]) for c in grid] for name in others}
    return Truth(throughput, {name: _crossing(grid, ratio) for name, ratio in ratios.items()})


def _crossing(levels: Sequence[int], logs: Sequence[float]) -> float | None:
    for left, right, above, below in zip(levels, levels[1:], logs, logs[1:], strict=False):
        if above > 0 >= below:
            return math.exp(math.log(left) + math.log(right / left) * above / (above - below))
    return None
