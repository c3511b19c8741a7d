"""Ways to run a server. Each yields an endpoint, always saves the log, always leaves nothing running."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kit.runtime.attach import AttachRuntime
from kit.runtime.container import ContainerRuntime
from kit.runtime.endpoint import Endpoint, Order, Runtime, Server, flush_cache, server_info, set_trace
from kit.runtime.engine import EngineError, Leftover, connect, leftovers
from kit.runtime.gpus import gpu_rows
from kit.runtime.hub import hub_cache, is_cached
from kit.runtime.inside import become_owner, require_writable
from kit.runtime.interpreter import cpu_engine, local_python
from kit.runtime.process import LocalRuntime, ProcessServer, StandinRuntime
from kit.spec import Spec

__all__ = [
    "Endpoint",
    "EngineError",
    "Leftover",
    "Order",
    "ProcessServer",
    "Runtime",
    "Server",
    "become_owner",
    "connect",
    "cpu_engine",
    "flush_cache",
    "gpu_rows",
    "hub_cache",
    "is_cached",
    "leftovers",
    "local_python",
    "require_writable",
    "runtime_for",
    "server_info",
    "set_trace",
]


def runtime_for(spec: Spec, *, faults: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Runtime:
    """The runtime that `spec` asks for; a stand-in gets the `faults` of each arm.

    Raises PrerequisiteError for an engine, an image or an environment that is missing.
    """
    kind, world = spec.engine.runtime, spec.engine.world
    if kind == "standin" and world is not None:
        return StandinRuntime(world, faults=faults)
    if kind == "docker":
        return ContainerRuntime(spec)
    if kind == "attach":
        return AttachRuntime(spec.engine.urls or {})
    return LocalRuntime(cpu_engine() if spec.engine.image == "cpu" else local_python())
