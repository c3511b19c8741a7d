"""A real server that dies: of a request, or killed while it is measured. The cause is named and the rest goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest

from kit.console import Progress
from kit.diagnosis import Cause, diagnose
from kit.pipeline import published
from kit.plan import Selection
from kit.records import LaunchStatus
from kit.runtime import Endpoint, Server
from kit.store import read_run
from tests.sglang.runs import measure

pytestmark = [pytest.mark.sglang, pytest.mark.slow]


def test_a_token_id_outside_the_vocabulary_kills_the_server_and_is_named_as_the_cause(
    server: tuple[Server, Endpoint],
) -> None:
    running, endpoint = server
    body = {"input_ids": [10**6], "sampling_params": {"max_new_tokens": 4}}
    with pytest.raises(httpx.HTTPError):
        httpx.post(f"{endpoint.base_url}/generate", json=body, timeout=300, trust_env=False)
    found = diagnose(running.log_text(), exit_code=running.stop())
    assert (found.cause, found.evidence) == (Cause.VOCABULARY, "IndexError: index out of range in self")


class Killer(Progress):
    """Kills the scheduler of the first server in the middle of a cell, as the kernel does when memory runs out."""

    def __init__(self, *, after: int) -> None:
        super().__init__()
        self.left = after

    def advance(self) -> None:
        super().advance()
        self.left -= 1
        if self.left == 0:
            os.kill(scheduler(), signal.SIGKILL)


def scheduler() -> int:
    """The scheduler process of the one server that this process has started."""
    return next(
        pid
        for server in children(os.getpid())
        for pid in children(server)
        if "scheduler" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_server_killed_in_the_middle_of_a_cell_costs_its_launch_and_nothing_else(
    engine: Path, tmp_path: Path
) -> None:
    selection = Selection(arms=("baseline", "k3"), levels=(8,))
    run = measure(tmp_path, selection=selection, watcher=Killer(after=10))
    facts = read_run(run)
    killed, other = facts.launches
    assert (killed.status, other.status) == (LaunchStatus.FAILED, LaunchStatus.COMPLETED)
    assert "killed from outside (SIGKILL): Subprocess scheduler" in (killed.failure or "")
    assert killed.server_info is not None
    # Its warm-up was finished, and stays.
    assert sum(cell.launch == killed.launch for cell in facts.cells) == 1
    assert facts.trace.lost == 0
    verdict, _ = published(run, out=tmp_path / "reports")
    assert any("killed from outside" in doubt.message for doubt in verdict.doubts.doubts)
