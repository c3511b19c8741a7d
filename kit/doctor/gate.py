"""What must be there before a run starts anything: an engine where the spec asks for containers, and its GPUs."""

from __future__ import annotations

import os

from kit.errors import PrerequisiteError
from kit.runtime import connect, gpu_rows
from kit.spec import Spec

__all__ = ["require_host"]

_ALTERNATIVES = (
    "`engine.runtime: local` runs SGLang installed on a host that has them, and "
    "`speckit run specs/quickstart.yaml` measures the stand-in anywhere"
)
_IN_IMAGE = (
    "start the container with `docker run --gpus all`, or measure the stand-in with "
    "`docker run speckit run specs/quickstart.yaml`"
)


def require_host(spec: Spec) -> None:
    """Raises PrerequisiteError, naming everything that is missing, when `spec` cannot be measured on this host."""
    missing = [problem for problem in (_engine_problem(spec), _gpu_problem(spec)) if problem]
    if missing:
        what = "here" if "SPECKIT_IMAGE" in os.environ else "on this host"
        remedy = _IN_IMAGE if "SPECKIT_IMAGE" in os.environ else _ALTERNATIVES
        raise PrerequisiteError(f"{spec.name} cannot be measured {what}: {'; '.join(missing)}; {remedy}")


def _engine_problem(spec: Spec) -> str | None:
    if spec.engine.runtime != "docker":
        return None
    try:
        connect().close()
    except PrerequisiteError as error:
        return str(error)
    return None


def _gpu_problem(spec: Spec) -> str | None:
    """Servers that somebody else runs bring their own GPUs."""
    if spec.engine.runtime == "attach" or spec.engine.simulated or spec.host.gpus == 0:
        return None
    seen = len(gpu_rows("name") or ())
    if seen >= spec.host.gpus:
        return None
    return f"it needs {spec.host.gpus} GPU{'s' if spec.host.gpus > 1 else ''} and nvidia-smi shows {seen or 'none'}"
