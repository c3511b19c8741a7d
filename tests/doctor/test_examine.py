"""The examination works on any host, says one thing a line, and blocks only what the spec really needs."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kit.cli import main
from kit.doctor import State, examine, require_host
from kit.doctor.allreduce import try_allreduce
from kit.doctor.gpu import gpu_findings
from kit.errors import PrerequisiteError
from kit.runtime import cpu_engine
from tests.specs import make_spec

# Stands for nvidia-smi: prints the asked fields of two GPUs, or the processes on them.
SMI = """#!{python}
import sys
query, fields = sys.argv[1].removeprefix("--query-").split("=")
values = {values!r}
if query == "gpu":
    for _ in range({gpus}):
        print(", ".join(values[field] for field in fields.split(",")))
elif values.get("process"):
    print("77, " + values["process"])
"""
A6000 = {
    "name": "NVIDIA RTX A6000",
    "driver_version": "580.65.06",
    "compute_cap": "8.6",
    "memory.total": "49140 MiB",
    "memory.free": "48600 MiB",
    "clocks.sm": "210 MHz",
    "clocks.max.sm": "2100 MHz",
    "power.limit": "300.00 W",
    "power.default_limit": "300.00 W",
    "persistence_mode": "Disabled",
    "ecc.mode.current": "Disabled",
}
REAL = {"runtime": "docker", "image": "triton", "world": None}


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without Docker and without nvidia-smi."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SPECKIT_IMAGE", raising=False)
    return tmp_path


def install(folder: Path, values: dict[str, str] | None = None, *, gpus: int = 1) -> None:
    path = folder / "nvidia-smi"
    path.write_text(SMI.format(python=sys.executable, values=A6000 | (values or {}), gpus=gpus))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def states(findings: object) -> dict[str, State]:
    return {finding.what: finding.state for finding in findings}  # type: ignore[attr-defined]


def test_a_host_without_anything_can_measure_the_standin(nothing: Path) -> None:
    found = states(examine(make_spec(host={"gpus": 0})))
    assert State.BLOCKS not in found.values()
    assert (found["Docker engine"], found["GPUs"]) == (State.WARNING, State.OK)


def test_a_spec_for_gpus_and_containers_is_blocked_by_each_that_is_missing(nothing: Path) -> None:
    found = states(examine(make_spec(engine=REAL)))
    assert (found["Docker engine"], found["GPUs"]) == (State.BLOCKS, State.BLOCKS)


def test_every_finding_is_one_line_and_all_but_ok_say_what_to_do(nothing: Path) -> None:
    for finding in examine(make_spec(engine=REAL)):
        assert len(finding.line().splitlines()) == 1
        assert finding.state is State.OK or finding.fix or "set" in finding.found


def test_the_gate_names_all_that_is_missing_and_both_alternatives(nothing: Path) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        require_host(make_spec(engine=REAL))
    for part in ("no Docker engine answers", "needs 1 GPU and nvidia-smi shows none", "local", "specs/quickstart.yaml"):
        assert part in str(caught.value)
    require_host(make_spec(host={"gpus": 1}))


def test_a_fitting_gpu_blocks_nothing_and_its_settings_are_read(nothing: Path) -> None:
    install(nothing)
    found = {finding.what: finding for finding in gpu_findings(make_spec(engine=REAL))}
    assert {finding.state for finding in found.values()} == {State.OK}
    assert found["power limit"].found == "300.00 W now, 300.00 W at most"
    assert found["persistence mode"].found == "Disabled"


@pytest.mark.parametrize(
    ("values", "what", "state"),
    [
        ({"driver_version": "570.12"}, "driver", State.BLOCKS),
        ({"compute_cap": "7.5"}, "compute capability", State.BLOCKS),
        ({"memory.free": "20000 MiB"}, "GPU memory", State.WARNING),
        ({"process": "python3"}, "other GPU users", State.WARNING),
    ],
)
def test_what_is_wrong_with_a_gpu_is_said(nothing: Path, values: dict[str, str], what: str, state: State) -> None:
    install(nothing, values)
    found = {finding.what: finding for finding in gpu_findings(make_spec(engine=REAL))}
    assert (found[what].state, bool(found[what].fix)) == (state, True)


def test_too_few_gpus_block(nothing: Path) -> None:
    install(nothing, gpus=2)
    assert states(gpu_findings(make_spec(engine=REAL, host={"gpus": 8})))["GPUs"] is State.BLOCKS


def test_the_command_prints_a_line_each_and_ends_with_what_blocks(nothing: Path, tmp_path: Path) -> None:
    fine = CliRunner().invoke(main, ["doctor"])
    assert fine.exit_code == 0
    assert all(line.startswith(("ok ", "warning ")) for line in fine.stdout.splitlines())
    blocked = CliRunner().invoke(main, ["doctor", "specs/a6000_triton.yaml"])
    assert blocked.exit_code == 4
    assert "findings block: Docker engine, GPUs" in blocked.stderr


def test_ranks_without_torch_are_not_held_against_the_host() -> None:
    found = try_allreduce(Path(sys.executable), backend="gloo", limit_s=60)
    assert (found.state, "No module named" in found.found) == (State.WARNING, True)


def test_ranks_that_never_meet_are_ended_at_the_limit(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    found = try_allreduce(python, backend="gloo", limit_s=0.5)
    assert (found.state, "NCCL_P2P_DISABLE=1" in found.fix) == (State.BLOCKS, True)


@pytest.mark.sglang
def test_two_ranks_agree_where_torch_is() -> None:
    try:
        python = cpu_engine()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    assert try_allreduce(python, backend="gloo", limit_s=120).state is State.OK
