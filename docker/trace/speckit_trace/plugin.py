"""The entry point: SGLang calls `install` first thing in every one of its processes.

SGLang logs and ignores whatever a plugin raises, except SystemExit. So everything that would leave a server
running without its trace ends the process here, before it reports itself ready.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import tempfile
from functools import wraps
from pathlib import Path
from typing import Any

from speckit_trace.hooks import Tracer
from speckit_trace.targets import HOOKED, Refusal, examine, resolve

DIRECTORY = "SPECKIT_TRACE_DIR"
ALLOW_UNKNOWN = "SPECKIT_TRACE_ALLOW_UNKNOWN"

# Importing the scheduler here would be too early in the other processes, and only schedulers have iterations.
_SCHEDULER_MODULE = "sglang.srt.managers.scheduler"
_REGISTRY = "sglang.srt.plugins.hook_registry"


def install() -> None:
    """Hook a scheduler process when SPECKIT_TRACE_DIR is set; do nothing otherwise.

    Raises:
        SystemExit: the trace was asked for and cannot be written, or SGLang is not one that was reviewed.
    """
    directory = os.environ.get(DIRECTORY)
    if not directory or _SCHEDULER_MODULE not in sys.modules:
        return
    try:
        if sys.byteorder != "little":
            raise Refusal("the trace format is little-endian and this machine is not; unset SPECKIT_TRACE_DIR")
        _try_writing(Path(directory))
        _hook(Path(directory))
    except Refusal as refusal:
        raise SystemExit(f"speckit_trace: {refusal}") from None
    except Exception as error:  # SGLang would log it and serve without a trace
        raise SystemExit(f"speckit_trace: {type(error).__name__}: {error}") from error


def _try_writing(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"speckit_trace")
    except OSError as error:
        raise Refusal(f"{DIRECTORY}={directory} cannot be written ({error}); give a writable folder") from error


def _hook(directory: Path) -> None:
    originals = {path: resolve(path) for path in HOOKED}
    proof = examine(allow_unknown=os.environ.get(ALLOW_UNKNOWN) == "1")
    tracer = Tracer(directory, proof)
    registry = pkgutil.resolve_name(f"{_REGISTRY}.HookRegistry")
    kinds = pkgutil.resolve_name(f"{_REGISTRY}.HookType")
    for path, (kind, hook) in tracer.hooks().items():
        registry.register(path, hook, kinds(kind))
    registry.apply_hooks()
    for path, wrapper in tracer.wrappers().items():
        owner, _, name = path.rpartition(".")
        setattr(resolve(owner), name, wraps(originals[path])(wrapper(originals[path])))
    for path, original in originals.items():
        _confirm(path, original)


def _confirm(path: str, original: Any) -> None:
    """The function in place must be a wrapper, however many deep, of the one that was examined."""
    installed: Any = resolve(path)
    layers = installed
    while layers is not original:
        layers = getattr(layers, "__wrapped__", None)
        if layers is None:
            break
    if installed is original or layers is not original:
        raise Refusal(f"{path} was not hooked; see the log above for what SGLang's hook registry said")
