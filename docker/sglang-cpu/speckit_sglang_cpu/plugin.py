"""An SGLang plugin: the attention class that SGLang has for CPUs serves under `--attention-backend torch_native`.

SGLang picks torch_native on a CPU without AMX, and its torch_native dies in the first verify. Its class for CPUs with
AMX can verify and draft, and runs on any CPU once the kernels it calls are the ones of `sgl_kernel` here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["install"]

_FACTORY = "sglang.srt.speculative.draft_utils.DraftBackendFactory._create_backend"
_BACKENDS = "sglang.srt.model_executor.model_runner.ModelRunner.init_attention_backends"
_SERVED, _BY = "torch_native", "intel_amx"


def install() -> None:
    """Entry point of the group `sglang.srt.plugins`: hooks in on a CPU engine, does nothing on any other."""
    if os.environ.get("SGLANG_USE_CPU_ENGINE") != "1":
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(_FACTORY, _create_draft_backend, HookType.AROUND)
    HookRegistry.register(_BACKENDS, _register_backend, HookType.BEFORE)


def _create_draft_backend(
    original: Callable[..., Any],
    factory: Any,
    backend_name: str,
    backend_map: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A draft's backend map has no torch_native at all."""
    if _BY in backend_map:
        backend_map = backend_map | {_SERVED: backend_map[_BY]}
    return original(factory, backend_name, backend_map, *args, **kwargs)


def _register_backend(*_: Any, **__: Any) -> None:
    """Imported only here: loading the registry earlier would pull in SGLang's models before it has read its flags."""
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    ATTENTION_BACKENDS[_SERVED] = ATTENTION_BACKENDS[_BY]
