"""The container engine: does it answer, can it pass GPUs on, is the image there, what have runs left behind?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kit.doctor.results import Finding, State
from kit.errors import PrerequisiteError
from kit.runtime import EngineError, connect, leftovers
from kit.spec import Spec

__all__ = ["engine_findings"]


def engine_findings(spec: Spec | None) -> Iterator[Finding]:
    """Every finding about Docker; where the spec needs none, nothing about it blocks."""
    needed = spec is not None and spec.engine.runtime == "docker"
    try:
        client = connect()
    except PrerequisiteError as error:
        state = State.BLOCKS if needed else State.WARNING
        fix = "needed by engine.runtime: docker alone; local and standin work without"
        yield Finding("Docker engine", state, str(error), fix)
        return
    try:
        about = client.info()
        yield Finding("Docker engine", State.OK, f"{about.get('ServerVersion')}, {about.get('Driver')}")
        yield _toolkit(about, needed=needed and spec is not None and spec.host.gpus > 0)
        if needed and spec is not None:
            yield _image(spec, client)
        yield from _leftovers(client)
    except EngineError as error:
        yield Finding("Docker engine", State.BLOCKS, f"it stopped answering ({error})", "look into its log")
    finally:
        client.close()


def _toolkit(about: dict[str, Any], *, needed: bool) -> Finding:
    devices = [str(one.get("ID", "")) for one in about.get("DiscoveredDevices") or () if isinstance(one, dict)]
    if "nvidia" in (about.get("Runtimes") or {}) or any("nvidia" in device for device in devices):
        return Finding("NVIDIA toolkit", State.OK, "the engine knows NVIDIA's runtime")
    # An engine that found the toolkit's hook at its start does not list it, so this cannot be more than a warning.
    fix = (
        "if `docker run --gpus all` says `could not select device driver`, install the NVIDIA Container Toolkit, run "
        "`nvidia-ctk runtime configure --runtime=docker`, restart the engine"
    )
    state = State.WARNING if needed else State.OK
    return Finding("NVIDIA toolkit", state, "the engine lists no NVIDIA runtime", fix if needed else "")


def _image(spec: Spec, client: Any) -> Finding:
    reference = spec.engine.container.image or f"speckit:{spec.engine.image}"
    try:
        image = client.images.get(reference)
    except EngineError:
        fix = f"`speckit run` will build or pull it; beforehand: `make image VARIANT={spec.engine.image}`"
        return Finding("image", State.WARNING, f"{reference} is not on this host", fix)
    revision = image.labels.get("org.opencontainers.image.revision", "unknown")
    return Finding("image", State.OK, f"{reference} is {image.id[7:19]}, kit revision {revision[:12]}")


def _leftovers(client: Any) -> Iterator[Finding]:
    found = list(leftovers(client))
    for one in found:
        if one.owned:
            yield Finding(
                "running", State.WARNING, f"{one.kind} {one.name} of run {one.run}", "wait until it has ended"
            )
        else:
            command = "docker rm -f" if one.kind == "container" else "docker network rm"
            yield Finding("leftover", State.WARNING, f"{one.kind} {one.name} of run {one.run}", f"{command} {one.name}")
    if not found:
        yield Finding("leftovers", State.OK, "no container or network of an earlier run")
