"""Launches of small worlds that the tests share."""

from __future__ import annotations

from pathlib import Path

from kit.contract import load
from kit.standin.adaptive import Rung, parse_ladder
from kit.standin.engine import Engine, Limits, Speculation
from kit.standin.iteration import Iteration
from kit.standin.request import Request
from kit.standin.world import World

__all__ = ["FAST", "LADDER", "engine", "play", "request"]

# A file for `--world`: answers as fast as they can be served.
FAST = str(Path(__file__).with_name("fast.yaml"))
LADDER: dict[int, Rung] = parse_ladder(load("0.5.15.post1").adaptive_ladder)


def engine(world: World, speculation: Speculation | None, *, running_requests: int = 32) -> Engine:
    """A launch without noise."""
    return Engine(world, speculation=speculation, limits=Limits(running_requests), launch_seed=None)


def request(
    world: World, number: int, *, tokens: int, speculates: bool = True, ignore_eos: bool = True, spare: int = 16
) -> Request:
    """Request `number` of a world, for `tokens` tokens."""
    prompt = (7, number)
    text = world.answer(prompt, length=tokens + spare, speculates=speculates)
    return Request(
        rid=f"r{number:03d}",
        prompt_tokens=len(prompt),
        text=text,
        max_new_tokens=tokens,
        stop_at=None if ignore_eos else text.first(frozenset({2})),
    )


def play(engine: Engine, *requests: Request) -> list[Iteration]:
    """Everything that the engine does with requests that arrive together."""
    for each in requests:
        engine.submit(each)
    done = []
    while (iteration := engine.step()) is not None:
        done.append(iteration)
    return done
