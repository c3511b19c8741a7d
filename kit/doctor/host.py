"""The host around the GPUs: disk, file descriptors, ports, CPU frequency, NUMA, models."""

from __future__ import annotations

import os
import resource
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from kit.doctor.results import Finding, State
from kit.errors import PrerequisiteError, SpecError
from kit.models import located
from kit.runtime import hub_cache, is_cached
from kit.spec import KIT_MODEL, Spec

__all__ = ["host_findings"]

_GIB = 2**30
_LEAST_GIB, _IMAGE_GIB = 5, 60
_DESCRIPTORS = 4096
_GOVERNORS = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node")
_HUB = ("huggingface.co", 443)


def host_findings(spec: Spec | None) -> Iterator[Finding]:
    """Every finding about the host itself."""
    yield _cores()
    yield _governor()
    yield _numa()
    yield _descriptors()
    yield _port()
    yield _disk("results", Path.cwd(), _LEAST_GIB)
    if spec is not None and spec.engine.runtime == "docker" and not spec.engine.simulated:
        yield _disk("disk for images", Path("/var/lib/docker"), _IMAGE_GIB)
    if spec is not None and not spec.engine.simulated and spec.engine.runtime != "attach":
        yield from _models(spec)


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    if cores >= 4:
        return Finding("CPU cores", State.OK, str(cores))
    return Finding(
        "CPU cores", State.WARNING, str(cores), "the load generator wants a core of its own beside the server's"
    )


def _governor() -> Finding:
    files = _GOVERNORS.glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({path.read_text(encoding="ascii").strip() for path in files})
    if not found:
        return Finding("CPU governor", State.OK, "the kernel tells none")
    state = State.OK if found == ["performance"] else State.WARNING
    fix = "" if state is State.OK else "`cpupower frequency-set -g performance`: a sleeping core answers late"
    return Finding("CPU governor", state, ", ".join(found), fix)


def _numa() -> Finding:
    nodes = len(list(_NODES.glob("node[0-9]*"))) or 1
    if nodes == 1:
        return Finding("NUMA", State.OK, "one node")
    fix = "bind server and kit to the GPU's node (numactl; `nvidia-smi topo -m` shows which)"
    return Finding("NUMA", State.WARNING, f"{nodes} nodes", fix)


def _descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    state = State.OK if soft >= _DESCRIPTORS else State.WARNING
    fix = "" if state is State.OK else f"`ulimit -n {_DESCRIPTORS}`: each stream takes one"
    return Finding("file descriptors", state, f"{soft} of {hard} at most", fix)


def _port() -> Finding:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError as error:
            return Finding("loopback ports", State.BLOCKS, str(error), "free the loopback interface")
    return Finding("loopback ports", State.OK, "can be bound; each launch looks for a free one")


def _disk(what: str, place: Path, least: int) -> Finding:
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / _GIB
    state = State.OK if free >= least else State.WARNING
    fix = "" if state is State.OK else f"make room: {least} GiB are wanted there"
    return Finding(what, state, f"{free:.0f} GiB free on {place}", fix)


def _models(spec: Spec) -> Iterator[Finding]:
    models = [spec.models.target.path, *([spec.models.draft.path] if spec.models.draft else [])]
    try:
        located(spec)
    except (PrerequisiteError, SpecError) as error:
        yield Finding("model", State.BLOCKS, str(error))
        models = [path for path in models if not path.startswith(KIT_MODEL)]
    for path in models:
        yield _model(path, gated=spec.models.target.gated and path == spec.models.target.path)


def _model(path: str, *, gated: bool) -> Finding:
    if path.startswith(KIT_MODEL):
        return Finding("model", State.OK, f"{path} is here and is the one of the catalogue")
    if Path(path).is_absolute():
        here = Path(path, "config.json").is_file()
        return Finding(
            "model", State.OK if here else State.BLOCKS, path, "" if here else "no config.json in that folder"
        )
    if is_cached(hub_cache(), path):
        return Finding("model", State.OK, f"{path} is in {hub_cache()}")
    if gated and not os.environ.get("HF_TOKEN"):
        return Finding("model", State.BLOCKS, f"{path} is gated and not here", "accept its licence and set HF_TOKEN")
    if not _reaches_hub():
        fix = f"fetch it into {hub_cache()} on a machine with network"
        return Finding("model", State.BLOCKS, f"{path} is not here, and the Hub does not answer", fix)
    return Finding("model", State.WARNING, f"{path} is not here", "the first launch will download it")


def _reaches_hub() -> bool:
    try:
        socket.create_connection(_HUB, timeout=5).close()
    except OSError:
        return False
    return True
