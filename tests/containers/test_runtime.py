"""The docker runtime on a real engine: measured, interrupted, killed; and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import docker
from kit.errors import PrerequisiteError, ServerError
from kit.records import LaunchStatus, Origin
from kit.runtime import Order, leftovers, runtime_for
from kit.runtime.container import ContainerServer
from kit.sglang import launch_flags
from kit.spec import Spec
from kit.store import read_run
from tests.containers.engine import ROOT, Engine, NoEngineError, engine
from tests.pipeline.test_experiment import write_spec
from tests.specs import make_spec

pytestmark = pytest.mark.docker

# Root in a test machine may not raise the limit of locked memory.
CONTAINER = {"memlock": None, "shm_gib": 0.25}
ENGINE = {"runtime": "docker", "image": "triton", "world": "crossover", "container": CONTAINER}
LONG = {"load": {"concurrency": [1, 4], "waves": 4, "min_requests": 12, "warmup_requests": 1}}


@pytest.fixture
def client(host: Engine, monkeypatch: pytest.MonkeyPatch) -> docker.DockerClient:
    """The engine as the kit sees it."""
    monkeypatch.setenv("DOCKER_HOST", host.env["DOCKER_HOST"])
    return docker.from_env()


def simulated(folder: Path, **sections: Any) -> Path:
    """The tiny spec, in containers."""
    return write_spec(folder, **({"engine": ENGINE, "host": {"gpus": 0}} | sections))


def started(host: Engine, spec: Path, out: Path) -> subprocess.Popen[str]:
    """`speckit run` as a process of its own."""
    command = (
        sys.executable,
        "-m",
        "kit",
        "run",
        str(spec),
        "--out",
        str(out),
        "--reports",
        str(out.parent / "reports"),
    )
    env = {**host.env, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=env, cwd=out.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(found: Callable[[], Any], *, within: float = 90) -> Any:
    end = time.monotonic() + within
    while not (value := found()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)
    return value


def measuring(run: Path) -> bool:
    """Whether the first timed repetition is stored."""
    try:
        return run.exists() and bool(read_run(run).repetitions)
    except Exception:  # the file is being written
        return False


def containers(host: Engine) -> list[str]:
    return host.docker("ps", "--all", "--filter", "label=speckit.run", "--format", "{{.Names}}").stdout.split()


def networks(host: Engine) -> list[str]:
    return host.docker("network", "ls", "--filter", "label=speckit.run", "--format", "{{.Name}}").stdout.split()


def nothing_is_left(host: Engine) -> bool:
    return containers(host) == networks(host) == []


def test_the_quickstart_is_measured_in_containers(host: Engine, tmp_path: Path) -> None:
    spec = yaml.safe_load((ROOT / "specs" / "quickstart.yaml").read_text())
    spec["engine"] = ENGINE
    shutil.copytree(ROOT / "specs" / "workloads", tmp_path / "workloads")
    path = tmp_path / "quickstart.yaml"
    path.write_text(yaml.safe_dump(spec))
    out = tmp_path / "run.duckdb"
    done = host.speckit("run", path, "--out", out, "--blocks", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED")
    facts = read_run(out)
    assert facts.header.origin is Origin.SIMULATED
    assert [launch.status for launch in facts.launches] == [LaunchStatus.COMPLETED] * 6
    assert {request.outcome.value for request in facts.requests} == {"ok"}
    assert facts.trace.lost == 0
    image = facts.header.host["image"]
    assert image["id"] == host.docker("image", "inspect", "--format", "{{.Id}}", "speckit:triton").stdout.strip()
    assert image["labels"]["org.speckit.variant"] == "triton"
    for launch in facts.launches:
        assert "[speckit] the kit talks to 172." in launch.log
        assert "[speckit] the container ended with exit code" in launch.log
        assert str(tmp_path) not in " ".join(launch.command)
    assert nothing_is_left(host)


def test_a_container_that_is_killed_costs_its_launch_and_no_other(host: Engine, tmp_path: Path) -> None:
    out = tmp_path / "run.duckdb"
    run = started(host, simulated(tmp_path, **LONG), out)
    until(lambda: measuring(out))
    host.docker("kill", until(lambda: containers(host))[0])
    run.communicate(timeout=200)
    assert run.returncode == 0
    failed, *others = sorted(read_run(out).launches, key=lambda launch: launch.status is not LaunchStatus.FAILED)
    assert (failed.status, failed.exit_code) == (LaunchStatus.FAILED, 137)
    assert "exit code 137, OOMKilled false" in failed.log
    assert {launch.status for launch in others} == {LaunchStatus.COMPLETED}
    assert nothing_is_left(host)


def test_an_interrupted_run_keeps_what_is_finished_and_leaves_nothing(host: Engine, tmp_path: Path) -> None:
    out = tmp_path / "run.duckdb"
    run = started(host, simulated(tmp_path, **LONG), out)
    until(lambda: measuring(out))
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    assert run.returncode == 130
    assert read_run(out).requests
    assert nothing_is_left(host)


def test_an_engine_that_dies_is_survived_and_said(host: Engine, tmp_path: Path) -> None:
    try:
        with engine(private=True) as other:
            assert other.folder is not None
            archive = tmp_path / "image.tar"
            host.docker("save", "--output", archive, "speckit:triton")
            other.docker("load", "--input", archive)
            out = tmp_path / "run.duckdb"
            run = started(other, simulated(tmp_path, **LONG), out)
            until(lambda: measuring(out))
            os.kill(int((other.folder / "dockerd.pid").read_text()), signal.SIGKILL)
            _, said = run.communicate(timeout=200)
    except NoEngineError as error:
        pytest.skip(str(error))
    facts = read_run(out)
    assert facts.requests
    assert LaunchStatus.FAILED in {launch.status for launch in facts.launches}
    assert "Traceback" not in said
    assert any(
        "no longer answers" in launch.log or "did not start" in (launch.failure or "") for launch in facts.launches
    )


def order_of(spec: Spec, folder: Path, *flags: str) -> Order:
    place = folder / "run.work" / "launch-000"
    place.mkdir(parents=True)
    return Order(
        0, "baseline", spec.engine.sglang, (*launch_flags(spec, spec.arm("baseline")), *flags), {}, place, 60.0
    )


def server_of(spec: Spec, folder: Path, *flags: str) -> ContainerServer:
    server = runtime_for(spec).server(order_of(spec, folder, *flags))
    assert isinstance(server, ContainerServer)
    return server


def test_the_engine_is_asked_for_what_the_spec_says(client: docker.DockerClient, host: Engine, tmp_path: Path) -> None:
    spec = make_spec(engine=ENGINE | {"container": CONTAINER | {"memory_gib": 1.0}}, host={"gpus": 2})
    server = server_of(spec, tmp_path)
    try:
        endpoint = server.start()
        (container,) = client.containers.list(filters={"label": "speckit.run=run"})
        settings, config = container.attrs["HostConfig"], container.attrs["Config"]
        assert (
            container.attrs["Image"] == host.docker("image", "inspect", "--format", "{{.Id}}", "speckit").stdout.strip()
        )
        assert settings["DeviceRequests"][0]["Count"] == 2
        assert (settings["ShmSize"], settings["Memory"], settings["IpcMode"]) == (2**28, 2**30, "private")
        assert [limit["Name"] for limit in settings["Ulimits"]] == ["stack"]
        assert {one["HostIp"] for one in settings["PortBindings"]["30000/tcp"]} == {"127.0.0.1"}
        assert config["User"] == f"{os.getuid()}:{os.getgid()}"
        assert config["Healthcheck"]["Test"] == ["NONE"]
        address = container.attrs["NetworkSettings"]["Networks"]["speckit-run-000"]["IPAddress"]
        assert endpoint.base_url == f"http://{address}:30000"
        assert any(bind.startswith("speckit-cache-") and bind.endswith(":/cache:rw") for bind in settings["Binds"])
    finally:
        server.stop()
    assert server.stop() == server.stop()
    for volume in client.volumes.list():
        if volume.name.startswith("speckit-cache-"):
            volume.remove()
    assert nothing_is_left(host)


def test_a_server_that_refuses_its_flags_says_why_and_is_removed(
    client: docker.DockerClient, host: Engine, tmp_path: Path
) -> None:
    server = server_of(make_spec(engine=ENGINE, host={"gpus": 0}), tmp_path, "--no-such-flag", "1")
    with pytest.raises(
        ServerError, match=r"ended with exit code 2, OOMKilled false before it was ready: .*no-such-flag"
    ):
        server.start()
    assert server.stop() == 2
    assert nothing_is_left(host)


def test_a_container_that_the_kernel_kills_for_memory_is_recorded_as_such(
    client: docker.DockerClient, host: Engine, tmp_path: Path
) -> None:
    spec = make_spec(engine=ENGINE | {"container": CONTAINER | {"memory_gib": 0.02}}, host={"gpus": 0})
    server = server_of(spec, tmp_path)
    with pytest.raises(ServerError, match=r"OOMKilled true before it was ready: .*memory"):
        server.start()
    assert server.stop() == 137
    assert "OOMKilled true" in server.log_text()


def test_a_silent_server_is_given_up_by_its_log_and_not_by_the_clock(
    client: docker.DockerClient, host: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = "import time\nfor at in range(30): print('compiling', at, flush=True); time.sleep(0.2)\ntime.sleep(600)"
    monkeypatch.setattr(ContainerServer, "_program", lambda self: ("python3", "-c", loop))
    spec = make_spec(engine=ENGINE, host={"gpus": 0})
    order = order_of(spec, tmp_path)
    server = runtime_for(spec).server(
        Order(**{**{n: getattr(order, n) for n in Order.__slots__}, "startup_timeout_s": 2.0})
    )
    try:
        with pytest.raises(ServerError, match="its log has stood still for 2 s"):
            server.start()
        assert "compiling 29" in server.log_text()
    finally:
        server.stop()
    assert nothing_is_left(host)


def test_what_a_killed_kit_leaves_is_listed_with_its_run(client: docker.DockerClient, host: Engine) -> None:
    labels = {"speckit.run": "abc", "speckit.owner": f"{os.uname().nodename}/999999999"}
    container = client.containers.create("speckit", ["--version"], labels=labels, name="speckit-abc-000")
    try:
        (found,) = leftovers(client)
        assert (found.kind, found.name, found.run, found.owned) == ("container", "speckit-abc-000", "abc", False)
    finally:
        container.remove(force=True)


def test_an_image_of_another_variant_is_refused(client: docker.DockerClient) -> None:
    spec = make_spec(engine=ENGINE | {"container": CONTAINER | {"image": "speckit:flashinfer"}}, host={"gpus": 0})
    with pytest.raises(PrerequisiteError, match=r"has org\.speckit\.variant flashinfer and the spec asks for triton"):
        runtime_for(spec)


def test_an_image_that_cannot_be_had_is_a_missing_prerequisite(client: docker.DockerClient) -> None:
    named = f"127.0.0.1:9/speckit@sha256:{'0' * 64}"
    spec = make_spec(engine=ENGINE | {"container": CONTAINER | {"image": named}}, host={"gpus": 0})
    with pytest.raises(PrerequisiteError, match="cannot be had"):
        runtime_for(spec)
