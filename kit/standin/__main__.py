"""`python -m kit.standin [SGLang flags] --world PRESET_OR_FILE --launch-seed N`: one server, one launch."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import uvicorn

from kit.contract import load
from kit.errors import SpecError
from kit.standin.flags import parse_arguments
from kit.standin.info import VERSION
from kit.standin.intake import Intake
from kit.standin.journal import LOG, configure
from kit.standin.server import Launch, application
from kit.standin.settings import LogitsBufferTooSmall, resolve
from kit.standin.trace import TraceFile
from kit.standin.world import load_world


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; returns the exit status."""
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
    except LogitsBufferTooSmall:
        _die_as_a_scheduler()
    for warning in settings.warnings:
        LOG.warning("%s", warning)
    LOG.info("server_args=ServerArgs(%s)", ", ".join(f"{key}={value!r}" for key, value in settings.arguments.items()))
    folder = os.environ.get("SPECKIT_TRACE_DIR")
    launch = Launch(
        world=world,
        settings=settings,
        intake=Intake(world, settings=settings, contract=contract),
        launch_seed=flags.launch_seed,
        trace=TraceFile(Path(folder), cuda_graph=settings.cuda_graph) if folder else None,
    )
    LOG.info(
        "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d,"
        " context_len=%d, available_gpu_mem=68.64 GB",
        *(settings.limits.pool_tokens, settings.arguments["chunked_prefill_size"]),
        *(settings.arguments["max_prefill_tokens"], settings.limits.running_requests, settings.context_length),
    )
    uvicorn.run(
        application(launch),
        host=settings.arguments["host"],
        port=settings.arguments["port"],
        log_config=None,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
    )
    return 0


def _leave(signum: int, frame: FrameType | None) -> None:
    LOG.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    raise SystemExit(0)


def _die_as_a_scheduler() -> None:
    """SGLang's scheduler dies of an exception, and its parent then kills the whole tree, itself included."""
    LOG.error("Scheduler hit an exception: %s", traceback.format_exc())
    LOG.error("Received sigquit from a child process. It usually means the child failed.")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
