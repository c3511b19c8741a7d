"""A server in a container of its own on a network of its own: started, awaited, logged, removed, whatever happens."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.models.containers import Container
from docker.models.images import Image
from docker.models.networks import Network
from docker.types import DeviceRequest, Ulimit

from docker import DockerClient
from kit.contract import load
from kit.diagnosis import diagnose
from kit.errors import ServerError
from kit.records import Origin
from kit.runtime.endpoint import Endpoint, Order, Server, is_ready
from kit.runtime.engine import (
    OWNER_LABEL,
    RUN_LABEL,
    EngineError,
    connect,
    explained,
    image_facts,
    image_for,
    oom_killed,
    owner,
)
from kit.runtime.gpus import architectures
from kit.runtime.hub import hub_cache, is_cached
from kit.runtime.process import TRACE_VARIABLE
from kit.spec import Spec
from kit.units import Seconds

__all__ = ["ContainerRuntime", "ContainerServer"]

_PORT = 30_000
_POLL_S = 0.1
_GRACE_S = 10
_GIB = 2**30
_FOLDER, _MODELS, _CACHE = "/launch", "/models", "/cache"
_SGLANG = ("python3", "-m", "sglang.launch_server")
_STANDIN = ("/opt/speckit/venv/bin/python", "-m", "kit.standin")
# The log is a file in the launch's folder, so it survives container and engine, and following it costs nothing here.
_LOGGED = ("sh", "-c", f'exec "$@" >>{_FOLDER}/server.log 2>&1', "speckit")


class ContainerRuntime:
    """Servers from the image that a spec names; with a world, that image's stand-in."""

    def __init__(self, spec: Spec) -> None:
        self.origin = Origin.SIMULATED if spec.engine.simulated else Origin.MEASURED
        self._spec = spec
        self._client = connect()
        self._image = image_for(spec, self._client)

    def server(self, order: Order) -> Server:
        return ContainerServer(self._client, self._image, self._spec, order)

    def facts(self) -> dict[str, Any]:
        """Image and engine, for the header of the run."""
        return image_facts(self._image, self._client)


@dataclass(frozen=True, slots=True)
class _Mount:
    """A folder of the host inside the container."""

    host: str
    inside: str
    mode: str

    @property
    def bind(self) -> str:
        return f"{self.host}:{self.inside}:{self.mode}"


class ContainerServer:
    """A `Server` that is one container."""

    def __init__(self, client: DockerClient, image: Image, spec: Spec, order: Order) -> None:
        self._client = client
        self._image = image
        self._spec = spec
        self._order = order
        self._folder = order.folder.resolve()
        self._log = self._folder / "server.log"
        self._name = f"speckit-{self._folder.parent.stem}-{order.launch:03d}"
        self._labels = {RUN_LABEL: self._folder.parent.stem, OWNER_LABEL: owner()}
        self._network: Network | None = None
        self._container: Container | None = None
        self._ended: int | None = None

    def start(self) -> Endpoint:
        (self._folder / "trace").mkdir(parents=True)
        started = time.monotonic()
        models = tuple(_models(self._order))
        command = (*self._program(), *_inside(self._order, models), "--host", "0.0.0.0", "--port", str(_PORT))
        try:
            self._network = self._client.networks.create(self._name, driver="bridge", labels=self._labels)
            self._container = self._client.containers.create(self._image.id or "", **self._settings(command, models))
            self._container.start()
            base_url = self._await(self._container)
        except EngineError as error:
            raise ServerError(f"the container did not start: {explained(error)}") from error
        return Endpoint(base_url, command, time.monotonic() - started, self._log, self._folder / "trace")

    def _program(self) -> tuple[str, ...]:
        if not self._spec.engine.simulated:
            return _SGLANG
        seed = ("--launch-seed", str(self._order.launch))
        return (*_STANDIN, "--world", self._spec.engine.world or "", "--version", self._order.sglang, *seed)

    def _settings(self, command: tuple[str, ...], models: tuple[_Mount, ...]) -> dict[str, Any]:
        """What the engine is told. Its own health check is off: each of its requests would cost the measured server."""
        wanted = self._spec.engine.container
        limits = (("memlock", wanted.memlock), ("stack", wanted.stack))
        return {
            "name": self._name,
            "labels": self._labels,
            "entrypoint": list(_LOGGED),
            "command": list(command),
            "user": f"{os.getuid()}:{os.getgid()}",
            "init": True,
            "network": self._name,
            "ports": {f"{_PORT}/tcp": ("127.0.0.1", None)},
            "environment": self._environment(),
            "volumes": [mount.bind for mount in (_Mount(str(self._folder), _FOLDER, "rw"), *models, *self._caches())],
            "device_requests": self._devices(),
            "shm_size": int(wanted.shm_gib * _GIB) if wanted.shm_gib and wanted.ipc == "private" else None,
            "ipc_mode": wanted.ipc,
            "mem_limit": int(wanted.memory_gib * _GIB) if wanted.memory_gib else None,
            "ulimits": [Ulimit(name=name, soft=value, hard=value) for name, value in limits if value is not None],
            "security_opt": ["no-new-privileges"],
            "healthcheck": {"test": ["NONE"]},
        }

    def _environment(self) -> dict[str, str]:
        """The spec's variables, where the trace goes, and the Hub's token, which is stored nowhere."""
        own = {TRACE_VARIABLE: f"{_FOLDER}/trace"}
        token = os.environ.get("HF_TOKEN") if self._spec.models.target.gated else None
        return self._order.env | own | ({"HF_TOKEN": token} if token else {}) | _offline(self._order)

    def _devices(self) -> list[DeviceRequest]:
        gpus = self._spec.host.gpus
        return [DeviceRequest(count=gpus, capabilities=[["gpu"]])] if gpus else []

    def _caches(self) -> Iterator[_Mount]:
        """Compiled kernels belong to an image and an architecture; models of the Hub lie in the user's own cache."""
        if self._spec.host.gpus:
            key = (self._image.id or "").removeprefix("sha256:")[:12]
            yield _Mount(f"speckit-cache-{key}-{architectures()}", _CACHE, "rw")
        if hub := _hub_models(self._order):
            cache = hub_cache()
            cache.mkdir(parents=True, exist_ok=True)
            yield _Mount(str(cache), _MODELS, "ro" if all(is_cached(cache, model) for model in hub) else "rw")

    def _await(self, container: Container) -> str:
        """The address at which the server answers. Given up when it ends, or when its log has stood still too long."""
        size, moved = 0, time.monotonic()
        while True:
            container.reload()
            if found := _answering(container, self._name):
                self._note(f"the kit talks to {found}")
                return f"http://{found}"
            if container.status not in ("created", "running"):
                raise ServerError(f"{_end(container)} before it was ready: {self._cause(container)}")
            now_size = self._log.stat().st_size if self._log.exists() else 0
            if now_size != size:
                size, moved = now_size, time.monotonic()
            if time.monotonic() - moved > self._order.startup_timeout_s:
                limit = self._order.startup_timeout_s
                raise ServerError(
                    f"the server is not ready and its log has stood still for {limit:g} s: {self._cause(container)}; "
                    "raise engine.startup_timeout_s if it was compiling"
                )
            time.sleep(_POLL_S)

    def _cause(self, container: Container) -> str:
        state = container.attrs["State"]
        code = state["ExitCode"] if state["Status"] == "exited" else None
        found = diagnose(
            self.log_text(),
            exit_code=code,
            oom_killed=oom_killed(container),
            names=load(self._order.sglang),
        )
        return f"{found.title}; {found.advice}"

    def stop(self) -> int | None:
        container, self._container = self._container, None
        network, self._network = self._network, None
        if container is not None:
            try:
                self._ended = self._stopped(container)
            except EngineError as error:
                self._note(
                    f"the container engine no longer answers ({explained(error)}); `speckit doctor` lists leftovers"
                )
            with suppress(*EngineError):
                container.remove(force=True, v=True)
        if network is not None:
            with suppress(*EngineError):
                network.remove()
        return self._ended

    def _stopped(self, container: Container) -> int:
        """Its exit status; what the engine knows of its end, and what was said before there was a log, goes there."""
        container.reload()
        early = container.status == "exited"
        if not early:
            container.stop(timeout=_GRACE_S)
            container.reload()
        if text := container.logs().decode("utf-8", "replace").strip():
            self._note(text)
        self._note(f"{_end(container)}{'' if early else ' when the kit stopped it'}")
        return int(container.attrs["State"]["ExitCode"])

    def _note(self, text: str) -> None:
        """One line of the kit's own, at the end of the server's log."""
        if self._folder.exists():
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"[speckit] {text}\n")

    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""


def _end(container: Container) -> str:
    state = container.attrs["State"]
    return f"the container ended with exit code {state['ExitCode']}, OOMKilled {str(oom_killed(container)).lower()}"


def _paths(order: Order) -> Iterator[str]:
    """Values of the flags that name a model."""
    for flag, value in zip(order.flags, order.flags[1:], strict=False):
        if flag in ("--model-path", "--speculative-draft-model-path"):
            yield value


def _models(order: Order) -> Iterator[_Mount]:
    """Folders of models on this host, each read-only under its own name."""
    for at, path in enumerate(dict.fromkeys(path for path in _paths(order) if Path(path).is_absolute())):
        yield _Mount(path, f"/mnt/{at}/{Path(path).name}", "ro")


def _inside(order: Order, models: tuple[_Mount, ...]) -> Iterator[str]:
    """The flags with every path of the host as the container sees it."""
    places = {mount.host: mount.inside for mount in models}
    for flag in order.flags:
        yield places.get(flag, flag.replace(str(order.folder), _FOLDER))


def _hub_models(order: Order) -> list[str]:
    """Models that are names on the Hub; the stand-in's are nowhere."""
    return [path for path in _paths(order) if not Path(path).is_absolute() and not path.startswith("standin/")]


def _offline(order: Order) -> dict[str, str]:
    """A cache that is mounted read-only must not be written to, and nothing is missing from it."""
    hub = _hub_models(order)
    return {"HF_HUB_OFFLINE": "1"} if hub and all(is_cached(hub_cache(), model) for model in hub) else {}


def _addresses(container: Container, network: str) -> Iterator[tuple[str, int]]:
    """The container's own address first: the published port goes through a proxy that copies every byte."""
    settings = container.attrs["NetworkSettings"]
    if address := settings["Networks"].get(network, {}).get("IPAddress"):
        yield address, _PORT
    for published in settings["Ports"].get(f"{_PORT}/tcp") or ():
        yield published["HostIp"], int(published["HostPort"])


def _answering(container: Container, network: str) -> str | None:
    """Where the server answers, its own address if it does there; None while it does not.

    Asked twice, because it may have become ready between the question to the one and that to the other.
    """
    for _ in range(2):
        ready = [
            f"{host}:{port}"
            for host, port in _addresses(container, network)
            if _listens(host, port) and is_ready(f"http://{host}:{port}")
        ]
    return ready[0] if ready else None


def _listens(host: str, port: int, *, within: Seconds = 1.0) -> bool:
    with suppress(OSError), socket.create_connection((host, port), timeout=within):
        return True
    return False
