"""`python -m kit.standin [SGLang flags] --world PRESET_OR_FILE --launch-seed N`: one server, one launch."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn

from kit.contract import load
from kit.errors import SpecError
from kit.standin.deaths import die, fail_launch
from kit.standin.faults import parse_faults
from kit.standin.flags import asked_version, parse_arguments
from kit.standin.intake import Intake
from kit.standin.journal import LOG, banner, configure
from kit.standin.precise import precise_loop
from kit.standin.running import Launch
from kit.standin.sabotage import sabotage_flags, sabotage_settings, sabotage_world
from kit.standin.server import application
from kit.standin.settings import LogitsBufferTooSmall, resolve
from kit.standin.trace import TraceFile
from kit.standin.world import load_world


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; returns the exit status. What SGLang does not start with ends as it does there."""
    signal.signal(signal.SIGTERM, _leave)
    configure()
    try:
        _serve(_launch(argv))
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except LogitsBufferTooSmall as error:
        die(f"AssertionError: {error}")
    return 0


def _launch(argv: Sequence[str]) -> Launch:
    """The launch that the command line asks for, logged as far as SGLang logs it, unless it dies on the way."""
    contract = load(asked_version(argv))
    flags = parse_arguments(argv, contract=contract)
    faults = parse_faults(flags.fault)
    world = sabotage_world(load_world(flags.world), faults)
    settings = sabotage_settings(resolve(sabotage_flags(flags, faults), contract=contract), faults)
    banner(settings)
    if faults.launch_failure is not None:
        fail_launch(faults.launch_failure, settings)
    intake = Intake(world, settings=settings, contract=contract, leftover=faults.leftover_cache)
    launch = Launch(world, settings, intake, flags.launch_seed, None, faults)
    return launch if faults.drop_trace else replace(launch, trace=_trace(launch))


def _serve(launch: Launch) -> None:
    arguments = launch.settings.arguments
    config = uvicorn.Config(
        application(launch),
        host=arguments["host"],
        port=arguments["port"],
        log_config=None,
        proxy_headers=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
    )
    # What is loaded by now stays; walking through it in the middle of an iteration costs tens of milliseconds.
    gc.freeze()
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(uvicorn.Server(config).serve())


def _trace(launch: Launch) -> TraceFile | None:
    folder = os.environ.get("SPECKIT_TRACE_DIR")
    return TraceFile(Path(folder), largest_graph=launch.largest_graph) if folder else None


def _leave(signum: int, frame: FrameType | None) -> None:
    """uvicorn shuts down first and then repeats the signal, which ends here."""
    LOG.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
