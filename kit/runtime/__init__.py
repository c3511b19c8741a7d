"""Ways to run a server. Each yields an endpoint, always saves the log, always leaves nothing running."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kit.errors import PrerequisiteError, SpecError
from kit.runtime.endpoint import Endpoint, Order, Runtime, Server, flush_cache, server_info, set_trace
from kit.runtime.interpreter import cpu_engine, local_python
from kit.runtime.process import LocalRuntime, ProcessServer, StandinRuntime
from kit.spec import Spec

__all__ = [
    "Endpoint",
    "Order",
    "ProcessServer",
    "Runtime",
    "Server",
    "cpu_engine",
    "flush_cache",
    "runtime_for",
    "server_info",
    "set_trace",
]


def runtime_for(spec: Spec, *, faults: Mapping[str, Sequence[str]] = MappingProxyType({})) -> Runtime:
    """The runtime that `spec` asks for; a stand-in gets the `faults` of each arm.

    Raises PrerequisiteError for a runtime this version does not have, SpecError for faults of a real server.
    """
    kind, world = spec.engine.runtime, spec.engine.world
    if kind == "standin" and world is not None:
        return StandinRuntime(world, faults=faults)
    if faults:
        raise SpecError(f"--fault: engine.runtime is {kind}, and only a stand-in gets something wrong when asked to")
    if kind == "local":
        return LocalRuntime(cpu_engine() if spec.engine.image == "cpu" else local_python())
    raise PrerequisiteError(
        f"engine.runtime {kind} is not built in this version: use `local` where SGLang is installed, or measure the "
        "stand-in with `speckit run specs/quickstart.yaml`"
    )
