"""`python -m kit.standin [SGLang flags] --world PRESET_OR_FILE --launch-seed N`: one server, one launch."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import uvicorn

from kit.errors import SpecError
from kit.standin.deaths import die
from kit.standin.journal import LOG, configure
from kit.standin.launch import prepare
from kit.standin.precise import precise_loop
from kit.standin.running import Launch
from kit.standin.server import application
from kit.standin.settings import LogitsBufferTooSmall


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM; returns the exit status. What SGLang does not start with ends as it does there."""
    signal.signal(signal.SIGTERM, _leave)
    configure()
    try:
        _serve(prepare(argv))
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except LogitsBufferTooSmall as error:
        die(f"AssertionError: {error}")
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


def _leave(signum: int, frame: FrameType | None) -> None:
    """uvicorn shuts down first and then repeats the signal, which ends here."""
    LOG.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
