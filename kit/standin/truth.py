"""What a measurement of a world should find: closed loops without noise, in virtual time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kit.standin.engine import Engine, Limits, Speculation
from kit.standin.request import Request
from kit.standin.text import EOS, Text
from kit.standin.world import World
from kit.units import Seconds, Tokens, TokensPerSecond

__all__ = ["Job", "Truth", "jobs", "simulate", "truth"]

_ROOM = Limits(running_requests=4096)
# Positions behind the last token, for the drafts of the last round.
_SPARE = 16
_GRID = (1, 2, 4, 6, 7, 8, 9, 10, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt (token ids) and how much is asked for."""

    prompt: tuple[int, ...]
    max_new_tokens: Tokens
    ignore_eos: bool = True


@dataclass(frozen=True, slots=True)
class Truth:
    """Tokens per second of each arm at each concurrency, and the concurrency up to which each beats the first."""

    throughput: Mapping[str, Mapping[int, TokensPerSecond]]
    crossover: Mapping[str, float | None]


def jobs(count: int, *, prompt_tokens: Tokens = 40, shortest: Tokens = 24, longest: Tokens = 48) -> tuple[Job, ...]:
    """`count` different prompts whose output lengths spread evenly between the two bounds."""
    spread = longest - shortest + 1
    return tuple(
        Job(prompt=(index, *range(1, prompt_tokens)), max_new_tokens=shortest + (index * 7919) % spread)
        for index in range(count)
    )


def truth(
    world: World, *, arms: Mapping[str, Speculation | None], work: Sequence[Job], grid: Sequence[int] = _GRID
) -> Truth:
    """Throughput of every arm on a grid of concurrencies, and where its ratio to the first arm falls below 1.

    The crossover is interpolated linearly in log ratio and log concurrency (method.md 5.5); None when the ratio
    crosses nowhere on the grid.
    """
    texts = {speculates: _texts(world, work, speculates=speculates) for speculates in (False, True)}
    throughput = {
        name: {level: _loop(world, arm, level, work, texts[arm is not None]) for level in grid}
        for name, arm in arms.items()
    }
    baseline, *others = throughput
    logs = {name: [math.log(throughput[name][c] / throughput[baseline][c]) for c in grid] for name in others}
    return Truth(throughput, {name: _crossing(grid, values) for name, values in logs.items()})


def simulate(
    world: World, *, speculation: Speculation | None, concurrency: int, work: Sequence[Job]
) -> TokensPerSecond:
    """Output tokens per second of a closed loop, over the window of method.md 5.1.

    The window ends when the number of requests in flight falls below `concurrency` for good; a client that answers
    at once keeps it at `concurrency` from the start. Raises ValueError when `work` cannot fill the loop.
    """
    return _loop(world, speculation, concurrency, work, _texts(world, work, speculates=speculation is not None))


def _texts(world: World, work: Sequence[Job], *, speculates: bool) -> list[Text]:
    return [world.answer(job.prompt, length=job.max_new_tokens + _SPARE, speculates=speculates) for job in work]


def _loop(
    world: World, speculation: Speculation | None, concurrency: int, work: Sequence[Job], texts: Sequence[Text]
) -> TokensPerSecond:
    if len(work) < concurrency:
        raise ValueError(f"{len(work)} requests cannot keep {concurrency} in flight; simulate more")
    engine = Engine(world, speculation=speculation, limits=_ROOM, launch_seed=None)
    requests = [_request(job, text, rid=str(rid)) for rid, (job, text) in enumerate(zip(work, texts, strict=True))]
    for request in requests[:concurrency]:
        engine.submit(request)
    pending = iter(requests[concurrency:])
    now_s: Seconds = 0.0
    tokens: Tokens = 0
    while (iteration := engine.step()) is not None:
        now_s += iteration.duration_s
        tokens += sum(row.request.produced - row.before for row in iteration.rows if not row.ghost)
        for _ in iteration.finished:
            following = next(pending, None)
            if following is None:
                return tokens / now_s
            engine.submit(following)
    raise ValueError("the simulation ended before its requests did")


def _request(job: Job, text: Text, *, rid: str) -> Request:
    return Request(
        rid=rid,
        prompt_tokens=len(job.prompt),
        text=text,
        max_new_tokens=job.max_new_tokens,
        stop_at=None if job.ignore_eos else text.first(frozenset({EOS})),
    )


def _crossing(levels: Sequence[int], logs: Sequence[float]) -> float | None:
    for (left, above), (right, below) in pairwise(zip(levels, logs, strict=True)):
        if above > 0 >= below:
            return math.exp(math.log(left) + math.log(right / left) * above / (above - below))
    return None
