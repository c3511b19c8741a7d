"""The container engine: reached or named as missing, the image that a spec asks for, and what runs have left behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import DockerException, ImageNotFound
from docker.models.containers import Container
from docker.models.images import Image

import docker
from docker import DockerClient
from kit.errors import PrerequisiteError
from kit.spec import Spec

__all__ = ["RUN_LABEL", "EngineError", "Leftover", "connect", "explained", "image_facts", "image_for", "leftovers"]

EngineError = (DockerException, OSError)
"""What a call raises when the engine refuses or is gone; the SDK lets its HTTP library's errors through."""

RUN_LABEL, OWNER_LABEL = "speckit.run", "speckit.owner"
_BUILD = Path(__file__).resolve().parents[2] / "docker" / "build.py"
_NO_TOOLKIT = "could not select device driver"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something of a run that is still on the engine; `owned` while the process that measures it lives."""

    kind: str
    name: str
    run: str
    owned: bool


def connect() -> DockerClient:
    """The engine that DOCKER_HOST names, else this host's. Raises PrerequisiteError when none answers."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    try:
        _try_socket(address)
        return docker.from_env(timeout=60)  # asks for the engine's version
    except EngineError as error:
        raise PrerequisiteError(
            f"no Docker engine answers at {address} ({_last(error)}): start it or join the group `docker`"
        ) from error


def _try_socket(address: str) -> None:
    """Whether somebody listens, asked first because the SDK leaves its socket open when nobody does."""
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(address.removeprefix("unix://"))


def explained(error: Exception) -> str:
    """An error of the engine in one line, with the remedy where it is known."""
    text = _last(error)
    if _NO_TOOLKIT in text:
        return f"the engine cannot pass GPUs on ({text}): install the NVIDIA Container Toolkit and restart the engine"
    return text


def image_for(spec: Spec, client: DockerClient) -> Image:
    """The image that the spec names: on this host, pulled by digest, or built from the repository.

    Raises PrerequisiteError when it is not to be had, or is not what the spec asks for.
    """
    named = spec.engine.container.image
    reference = named or f"speckit:{spec.engine.image}"
    try:
        image = _found(client, reference) or (
            client.images.pull(reference) if named else _built(spec, client, reference)
        )
    except EngineError as error:
        raise PrerequisiteError(f"image {reference} cannot be had: {explained(error)}") from error
    wanted = {"org.speckit.variant": spec.engine.image, "org.speckit.sglang": spec.engine.sglang}
    for label, value in wanted.items():
        if image.labels.get(label) != value:
            raise PrerequisiteError(
                f"image {reference} has {label} {image.labels.get(label)} and the spec asks for {value}: build it with "
                f"`make image VARIANT={spec.engine.image}`"
            )
    return image


def image_facts(image: Image, client: DockerClient) -> dict[str, Any]:
    """What is recorded of an image and of the engine that runs it."""
    return {
        "image": {
            "id": image.id,
            "digests": list(image.attrs.get("RepoDigests") or ()),
            "created": image.attrs.get("Created"),
            "labels": {name: value for name, value in sorted(image.labels.items()) if name.startswith("org.")},
        },
        "engine": {"docker": client.version().get("Version")},
    }


def leftovers(client: DockerClient) -> Iterator[Leftover]:
    """Containers and networks that runs have left on the engine, or that a run is using now."""
    chosen: dict[str, str | list[str] | bool] = {"label": RUN_LABEL}
    for container in client.containers.list(all=True, filters=chosen):
        yield _leftover("container", container.name or "", container.labels)
    for network in client.networks.list(filters=chosen):
        yield _leftover("network", network.name or "", network.attrs.get("Labels") or {})


def owner() -> str:
    """This process, as a label."""
    return f"{os.uname().nodename}/{os.getpid()}"


def oom_killed(container: Container) -> bool:
    """What the engine says about the kernel's OOM killer."""
    return bool(container.attrs["State"].get("OOMKilled"))


def _leftover(kind: str, name: str, labels: dict[str, str]) -> Leftover:
    node, _, pid = labels.get(OWNER_LABEL, "").partition("/")
    alive = node == os.uname().nodename and Path("/proc", pid, "cmdline").exists()
    return Leftover(kind, name, labels.get(RUN_LABEL, ""), owned=alive)


def _found(client: DockerClient, reference: str) -> Image | None:
    try:
        return client.images.get(reference)
    except ImageNotFound:
        return None


def _built(spec: Spec, client: DockerClient, reference: str) -> Image:
    """The image built from the repository, if this kit runs from one; what the build prints goes to stderr."""
    if not _BUILD.is_file() or shutil.which("docker") is None:
        raise PrerequisiteError(
            f"image {reference} is not on this host: build it in the repository with `make image "
            f"VARIANT={spec.engine.image}`, or name one by digest in engine.container.image"
        )
    print(f"image {reference} is not on this host: building it", file=sys.stderr)
    done = subprocess.run((sys.executable, str(_BUILD), str(spec.engine.image)), stdout=sys.stderr)
    if done.returncode != 0:
        raise PrerequisiteError(
            f"image {reference} could not be built (exit code {done.returncode}, see above); where the base cannot be "
            "pulled, `engine.runtime: local` runs SGLang installed here, and `speckit run specs/quickstart.yaml` "
            "measures the stand-in"
        )
    return client.images.get(reference)


def _last(error: Exception) -> str:
    """The innermost reason: the SDK wraps what the engine said several times."""
    explanation = getattr(error, "explanation", None)
    return str(explanation or error).strip().splitlines()[-1]
