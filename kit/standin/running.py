"""One launch while it runs: its engine, the task that plays it, its log and trace, and whether it is warm."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from starlette.applications import Starlette

from kit.standin.engine import Engine
from kit.standin.faults import Faults
from kit.standin.intake import Body, Intake
from kit.standin.journal import LOG, Journal
from kit.standin.scheduler import Scheduler
from kit.standin.settings import Settings
from kit.standin.trace import TraceFile
from kit.standin.world import World

__all__ = ["Launch", "Running"]

_WARMUP = Body(text="The capital city of France is", sampling_params={"temperature": 0, "max_new_tokens": 8})


@dataclass(frozen=True, slots=True)
class Launch:
    """What one server process plays."""

    world: World
    settings: Settings
    intake: Intake
    launch_seed: int
    trace: TraceFile | None
    faults: Faults = field(default_factory=Faults)

    @property
    def largest_graph(self) -> int:
        """Largest batch that really decodes as a CUDA graph."""
        limit, captured = self.faults.eager_above, self.settings.largest_graph
        return captured if limit is None else min(limit, captured)


class Running:
    """A launch and what it consists of once it runs; `scheduler` is there from the start of the application on."""

    scheduler: Scheduler

    def __init__(self, launch: Launch) -> None:
        settings = launch.settings
        self.launch = launch
        self.ready = False
        self.journal = Journal(
            interval=settings.arguments["decode_log_interval"],
            pool_tokens=settings.limits.pool_tokens,
            largest_graph=launch.largest_graph,
        )
        self._engine = Engine(
            launch.world,
            speculation=settings.speculation,
            limits=settings.limits,
            launch_seed=launch.launch_seed,
            foresees_length=settings.dialect.foresees_length,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the scheduler beside the application and warm it up."""
        trace, lag_s = self.launch.trace, (self.launch.faults.late_host or 0) / 1e3
        self.scheduler = Scheduler(self._engine, trace=trace, journal=self.journal, lag_s=lag_s)
        tasks = [asyncio.create_task(self.scheduler.run()), asyncio.create_task(self._warm_up())]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if trace is not None:
            trace.close()

    async def _warm_up(self) -> None:
        await asyncio.sleep(self.launch.world.startup_s)
        if not self.launch.settings.arguments["skip_server_warmup"]:
            await self.scheduler.submit(self.launch.intake.request(_WARMUP)).finished()
        self.ready = True
        LOG.info("The server is fired up and ready to roll!")
