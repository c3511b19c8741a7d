"""The scheduler dies in the middle of a cell and the server ends with 0: one event, and the arm is not measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kit.checks import CellState, Code
from kit.diagnosis import Cause, diagnose
from kit.load import Exchange, Prompt, to_record
from kit.records import LaunchStatus, Outcome, RequestRecord, RunFacts
from kit.verdict import judge
from tests.builders import build_run, build_spec, eagle3, edit_launches
from tests.field.inputs import objects, rows, text

ROWS, RUN, LOG = rows("F12", "requests.jsonl"), objects("F12", "run.json"), text("F12", "server.log")
BROKEN = {"RemoteDisconnected": Outcome.RESET, "ConnectionRefusedError": Outcome.REFUSED}
NS = 1_000_000_000


def record(row: dict[str, Any], blank: RequestRecord) -> RequestRecord:
    """A whole answer as the builder makes it, or what the load generator makes of a broken one."""
    sent, ended = round(row["start_s"] * NS), round(row["end_s"] * NS)
    if row.get("http") == 200:
        return replace(blank, index=row["id"], rid=f"r{row['id']}", sent_ns=sent, ended_ns=ended)
    exchange = Exchange(
        f"r{row['id']}",
        sent_ns=sent,
        ended_ns=ended,
        broken=BROKEN[row["client_error"]],
        error=row["client_error"],
    )
    prompt = Prompt(f"p{row['id']}", "chat", "Go on.", 256)
    return to_record(exchange, prompt, repetition=blank.repetition, index=row["id"], speculative=True)


def crashed(log: str, *, exit_code: int) -> RunFacts:
    """A run whose only cell of the arm broke off, with the failure that a measurement would store."""
    spec = build_spec(
        arms=[{"kind": "baseline", "name": "baseline"}, eagle3(5) | {"name": RUN["arm"]}],
        load={"concurrency": [RUN["concurrency"]], "waves": 2},
        server={"max_running_requests": 64},
        workload={"prompts": 96},
        design={"blocks": 1},
    )
    facts = build_run(spec)
    launch = next(launch.launch for launch in facts.launches if launch.arm == RUN["arm"])
    mine = {cell.cell for cell in facts.cells if cell.launch == launch}
    blank = next(request for request in facts.requests if request.repetition in mine)
    others = tuple(request for request in facts.requests if request.repetition not in mine)
    facts = replace(facts, requests=(*others, *(record(row, blank) for row in ROWS)))
    found = diagnose(log, exit_code=exit_code)
    return edit_launches(
        facts,
        lambda one: replace(
            one, status=LaunchStatus.FAILED, exit_code=exit_code, log=log, failure=f"{found.title}; {found.advice}"
        ),
        arm=RUN["arm"],
    )


def test_the_log_names_one_cause_although_the_server_ended_with_0() -> None:
    assert (RUN["server_exit_code"], RUN["harness_sent_signal"]) == (0, None)
    found = diagnose(LOG, exit_code=RUN["server_exit_code"])
    assert found.cause is Cause.ILLEGAL_MEMORY_ACCESS
    assert "illegal memory access" in found.evidence
    assert found.time is not None and "10:00:26" in found.time


def test_what_clients_saw_is_counted_and_is_not_the_cause() -> None:
    outcomes = Counter(request.outcome for request in crashed(LOG, exit_code=0).requests[-len(ROWS) :])
    assert outcomes == {Outcome.OK: 48, Outcome.RESET: 16, Outcome.REFUSED: 96}
    failures = [launch.failure or "" for launch in crashed(LOG, exit_code=0).launches if launch.arm == RUN["arm"]]
    assert all("illegal memory access" in failure and "refused" not in failure for failure in failures)


@pytest.mark.parametrize("exit_code", [0, 1, -9, 137])
def test_the_arm_has_no_number_that_counts_whatever_the_exit_status(exit_code: int) -> None:
    verdict = judge(crashed(LOG, exit_code=exit_code))
    (cell,) = (one for one in verdict.doubts.cells if one.arm == RUN["arm"])
    assert cell.state is CellState.INVALID
    assert Code.FAILED_REQUESTS in cell.causes
    (comparison,) = verdict.speed.comparisons
    assert (comparison.word.value, comparison.comparison.ratio.point) == ("inconclusive", None)


def test_the_crash_is_told_once_with_its_cause() -> None:
    doubts = judge(crashed(LOG, exit_code=0)).doubts.doubts
    told = [one.message for one in doubts if one.code is Code.LAUNCH_FAILED and "illegal memory access" in one.message]
    assert len(told) == 1


def test_another_crash_of_the_same_kind_in_other_words_has_the_same_cause() -> None:
    log = LOG.replace("torch.AcceleratorError: CUDA error", "RuntimeError: CUDA error").replace(
        "eagle worker, verify", ""
    )
    assert diagnose(log, exit_code=-9).cause is Cause.ILLEGAL_MEMORY_ACCESS
