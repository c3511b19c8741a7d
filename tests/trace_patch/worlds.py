"""A run of the toy and what it left behind."""

from __future__ import annotations

from typing import Any

from kit.importers.recording import Recording
from kit.importers.trace import read_recording
from tests.trace_patch.conftest import Toy

__all__ = ["handled", "served", "status"]


def served(traced: Toy, scheduler: Any, requests: list[Any]) -> Recording:
    """Start the scheduler, let it serve the requests to the end, read the trace."""
    scheduler.get_init_info()
    scheduler.waiting_queue = requests
    scheduler.run_event_loop()
    return read_recording(traced.directory)


def handled(traced: Toy, scheduler: Any, batch: Any) -> Recording:
    """Start the scheduler, let it handle one batch made by hand, end it, read the trace."""
    scheduler.get_init_info()
    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
    scheduler.run_event_loop()
    return read_recording(traced.directory)


def status(scheduler: Any) -> dict[str, Any]:
    """The plugin's entry in /server_info."""
    shown: dict[str, Any] = scheduler.get_internal_state(None).internal_state["speckit_trace"]
    return shown
