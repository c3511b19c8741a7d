"""Places of the host in what servers said: they differ from host to host, move no number and are nobody's business."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kit.records import Launch
from kit.sglang.server import named_models
from kit.spec import Spec

__all__ = ["without_places"]

# Folders in which people, packages and temporary files live; an endpoint such as /v1/loads is no place.
_ROOTS = "data|home|mnt|nix|opt|private|root|scratch|srv|tmp|Users|usr|var|work|workspace"
_PATH = re.compile(rf"(?<![\w.:/…])/(?:{_ROOTS})(?:/[^\s\"'`<>|:,;()\[\]{{}}\\]+)+")
_PACKAGES = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/")


def without_places(launch: Launch, spec: Spec) -> Launch:
    """`launch` with every path of the host cut to what it says: a module inside its package, else the last name.

    Models that the spec calls kit:NAME stand under that name, and paths that the spec itself states stay.
    """
    kept = tuple(model.path for model in (spec.models.target, spec.models.draft) if model is not None)
    return replace(
        launch,
        command=tuple(_cut(word, spec, kept) for word in launch.command),
        server_info=_cut(launch.server_info, spec, kept),
        failure=_cut(launch.failure, spec, kept),
        log=_cut(launch.log, spec, kept),
    )


def _cut(value: Any, spec: Spec, kept: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(item, spec, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, spec, kept) for item in value]
    if not isinstance(value, str):
        return value
    return _PATH.sub(lambda found: _short(found.group(), kept), named_models(value, spec))


def _short(path: str, kept: tuple[str, ...]) -> str:
    if any(path == one or path.startswith(f"{one}/") for one in kept):
        return path
    inside = _PACKAGES.sub("", path)
    return f"…/{inside if inside != path else path.rsplit('/', 1)[-1]}"
