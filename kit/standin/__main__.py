"""`python -m kit.standin [SGLang flags] --world PRESET_OR_FILE --launch-seed N`: one server, one launch."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import uvicorn

from kit.contract import load
from kit.errors import SpecError
from kit.standin.flags import parse_arguments
from kit.standin.info import VERSION
from kit.standin.intake import Intake
from kit.standin.journal import LOG, banner, configure, die
from kit.standin.precise import precise_loop
from kit.standin.server import Launch, application
from kit.standin.settings import LogitsBufferTooSmall, Settings, resolve
from kit.standin.trace import TraceFile
from kit.standin.world import load_world


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; returns the exit status. What SGLang does not start with ends as it does there."""
    signal.signal(signal.SIGTERM, _leave)
    configure()
    contract = load(VERSION)
    flags = parse_arguments(argv, contract=contract)
    try:
        world = load_world(flags.world)
        settings = resolve(flags, contract=contract)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except LogitsBufferTooSmall as error:
        die(f"AssertionError: {error}")
        raise
    banner(settings)
    intake = Intake(world, settings=settings, contract=contract)
    _serve(Launch(world, settings, intake, flags.launch_seed, _trace(settings)))
    return 0


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


def _trace(settings: Settings) -> TraceFile | None:
    folder = os.environ.get("SPECKIT_TRACE_DIR")
    return TraceFile(Path(folder), largest_graph=settings.largest_graph) if folder else None


def _leave(signum: int, frame: FrameType | None) -> None:
    """uvicorn shuts down first and then repeats the signal, which ends here."""
    LOG.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
