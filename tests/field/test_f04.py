"""A draft trained for fewer positions than the target is given: the launch fails, and its exit status says 0."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kit.diagnosis import Cause, diagnose
from kit.errors import ServerError
from kit.runtime import Order, ProcessServer
from kit.sglang import launch_flags
from kit.verdict import Heading, judge
from tests.builders import build_spec, shared_run
from tests.field.inputs import failed_launches, objects, refusal, text

LOG = text("F04", "server.log")
RUN = objects("F04", "run.json")

# The same kind in SGLang's other wording, behind a rank's prefix, with other sizes and another exit status.
VARIANT = (
    "[2026-02-03 08:00:40 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "model_config.py", line 411, in _derive_context_length\n'
    "ValueError: Warning: Target model's context_length (16384) is greater than the derived context_length (4096). "
    "This may lead to incorrect model outputs or CUDA errors.\n"
    "[2026-02-03 08:00:41] SIGQUIT received. It usually means one child failed.\n"
)


@pytest.mark.parametrize(
    ("log", "exit_code", "asked", "allowed"),
    [(LOG, RUN["exit_code"], 8192, 2048), (VARIANT, -9, 16384, 4096)],
    ids=["field", "variant"],
)
def test_the_cause_is_the_drafts_context_and_both_ways_out_are_offered(
    log: str, exit_code: int, asked: int, allowed: int
) -> None:
    found = diagnose(log, exit_code=exit_code)
    assert found.cause is Cause.DRAFT_CONTEXT_LENGTH
    assert f"{asked} tokens asked for, the draft allows {allowed}" in found.title
    assert "--context-length" in found.advice
    assert "in every arm" in found.advice
    assert "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1" in found.advice
    assert "reported by context depth" in found.advice


def test_an_exit_status_of_zero_is_no_success() -> None:
    assert "exit status 0 is no sign of success" in diagnose(LOG, exit_code=RUN["exit_code"]).contributing[0]


def test_a_targets_own_limit_is_not_blamed_on_the_draft() -> None:
    log = VARIANT.replace("Target model's context_length", "User-specified context_length")
    assert diagnose(log, exit_code=-9).cause is Cause.CONTEXT_LENGTH


def test_the_launch_is_given_up_when_the_process_ends_and_not_after_the_wait(tmp_path: Path) -> None:
    order = Order(
        launch=0,
        arm="baseline",
        sglang="0.5.15.post1",
        flags=(),
        env={},
        folder=tmp_path,
        startup_timeout_s=RUN["launch_wait_s"],
    )
    server = ProcessServer((sys.executable, "-c", f"print({LOG!r})"), order)
    began = time.monotonic()
    with pytest.raises(ServerError, match="ended with 0 before it was ready: the draft allows a shorter context"):
        server.start()
    assert time.monotonic() - began < RUN["launch_wait_s"] / 10
    assert server.stop() == RUN["exit_code"]


@pytest.mark.parametrize("log", [LOG, VARIANT], ids=["field", "variant"])
def test_the_arm_is_not_measured_and_nothing_is_said_of_its_speed(log: str) -> None:
    verdict = judge(failed_launches(shared_run(), arm="eagle3_k3", log=log, exit_code=0))
    (missing,) = (one for one in verdict.not_measured if one.what == "arm eagle3_k3")
    assert missing.reason.startswith("the draft allows a shorter context than the target was given")
    assert Heading.PARTIAL in verdict.headings
    assert Heading.GATE_FAILED not in verdict.headings
    assert "eagle3_k3" not in {one.comparison.arm for one in verdict.speed.comparisons}
    assert "eagle3_k3" not in {row.outputs.arm for row in verdict.losslessness.rows}


def test_a_draft_whose_limit_is_known_is_refused_before_anything_starts() -> None:
    sections = build_spec().model_dump(mode="json")
    server, models = sections["server"] | {"context_length": 8192}, sections["models"]
    reason = refusal(server=server, models=models | {"draft": models["draft"] | {"context_length": 2048}})
    assert "8192 exceeds the draft's 2048 positions" in reason
    assert "use 2048 or less on every arm" in reason


def test_the_override_is_never_set_by_the_kit() -> None:
    spec = build_spec()
    assert not spec.server.env
    assert all("OVERWRITE" not in flag for arm in spec.arms for flag in launch_flags(spec, arm))
