"""What a person types: `docker run speckit ...`, as written in the README."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.containers.engine import ROOT, Engine
from tests.pipeline.test_experiment import write_spec

pytestmark = pytest.mark.docker

UID = "10001:10001"
SMALL = {"load": {"concurrency": [1], "waves": 1, "min_requests": 2, "warmup_requests": 1}}


def test_without_a_gpu_the_command_says_so_and_shows_the_one_that_works(host: Engine) -> None:
    done = host.docker("run", "--rm", "--gpus", "all", "speckit", "report", check=False)
    assert (done.returncode, done.stdout) == (4, "")
    first, last = done.stderr.splitlines()
    assert first.startswith("/results holds no run: measuring the image's default spec (EAGLE3 for SmolLM2-135M")
    assert "it needs 1 GPU and nvidia-smi shows none" in last
    assert "`docker run speckit run specs/quickstart.yaml`" in last


def test_without_a_run_the_default_spec_is_measured_and_then_reported(host: Engine, specs: Path, results: Path) -> None:
    spec = write_spec(specs, **SMALL)
    mounts = ("--volume", f"{results}:/results", "--volume", f"{specs}:/spec:ro")
    options = ("--gpus", "all", "--user", UID, *mounts, "--env", f"SPECKIT_DEFAULT_SPEC=/spec/{spec.name}")
    measured = host.docker("run", "--rm", *options, "speckit", "report")
    assert measured.stderr.startswith("/results holds no run: measuring the image's default spec (A tiny spec)")
    assert measured.stdout.startswith("SIMULATED")
    assert len(list(results.glob("*.duckdb"))) == 1
    again = host.docker("run", "--rm", *options, "speckit", "report")
    assert again.stderr == ""
    assert again.stdout.splitlines()[0] == measured.stdout.splitlines()[0]
    assert {path.stat().st_uid for path in results.rglob("*") if path != results} == {10001}


def test_a_report_needs_neither_a_writable_root_nor_a_user_nor_rights(host: Engine, specs: Path, results: Path) -> None:
    write_spec(specs, **SMALL)
    mounts = ("--volume", f"{results}:/results", "--volume", f"{specs}:/spec:ro")
    strict = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--network", "none", "--user", UID)
    measured = host.docker("run", "--rm", *strict, *mounts, "speckit", "run", "/spec/tiny.yaml")
    assert measured.stdout.startswith("SIMULATED")
    assert host.docker("run", "--rm", *strict, *mounts, "speckit", "report").stdout.startswith("SIMULATED")


def test_files_belong_to_whoever_owns_the_mounted_folder(host: Engine, specs: Path, results: Path) -> None:
    results.chmod(0o755)
    host.docker("run", "--rm", "--volume", f"{results}:/results", "--entrypoint", "chown", "speckit", UID, "/results")
    write_spec(specs, **SMALL)
    mounts = ("--volume", f"{results}:/results", "--volume", f"{specs}:/spec:ro")
    host.docker("run", "--rm", *mounts, "speckit", "run", "/spec/tiny.yaml")
    assert {path.stat().st_uid for path in results.rglob("*")} == {10001}


def test_a_mount_that_cannot_be_written_is_one_line_with_the_remedy(host: Engine, results: Path) -> None:
    results.chmod(0o755)
    mount = ("--volume", f"{results}:/results")
    done = host.docker("run", "--rm", "--user", UID, *mount, "speckit", "report", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: /results/reports cannot be written by uid 10001 (Permission denied)")
    assert "--user $(id -u):$(id -g)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_selftest_runs_anywhere(host: Engine) -> None:
    strict = ("--read-only", "--tmpfs", "/tmp", "--network", "none", "--user", UID)
    done = host.docker("run", "--rm", *strict, "speckit", "selftest", "--replications", "1", check=False)
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) > 10


def test_what_the_image_holds_is_recorded_with_a_run(host: Engine, specs: Path, results: Path) -> None:
    write_spec(specs, **SMALL)
    mounts = ("--volume", f"{results}:/results", "--volume", f"{specs}:/spec:ro")
    host.docker("run", "--rm", "--user", UID, *mounts, "speckit", "run", "/spec/tiny.yaml", "--arms", "baseline")
    verdict = json.loads(host.docker("run", "--rm", *mounts[:2], "speckit", "report", "--json").stdout)
    assert verdict["schema_version"] >= 1


def test_the_readme_shows_the_commands_that_are_tested() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in ("docker run --gpus all", "speckit report", "speckit selftest", "make image VARIANT=triton"):
        assert command in readme
