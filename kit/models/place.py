"""Where a model named `kit:NAME` lies on this machine, so that a spec holds no path of any machine.

In this order: the folder SPECKIT_MODELS (images set it), `docker/models` of the repository, the user's cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kit.errors import PrerequisiteError, SpecError
from kit.models.catalogue import CATALOGUE, Model
from kit.spec import Spec

__all__ = ["SCHEME", "cache_folder", "located", "model_folder"]

SCHEME = "kit:"
_REPOSITORY = Path(__file__).resolve().parents[2]


def located(spec: Spec) -> Spec:
    """`spec` with every `kit:NAME` replaced by the folder of that model; other names are left to SGLang.

    Raises SpecError for a name that the kit does not know, PrerequisiteError for a model that is not here yet.
    """
    models = spec.models
    places: dict[str, object] = {"target": models.target.model_copy(update={"path": _place(models.target.path)})}
    if models.draft is not None:
        places["draft"] = models.draft.model_copy(update={"path": _place(models.draft.path)})
    return spec.model_copy(update={"models": models.model_copy(update=places)})


def model_folder(model: Model) -> Path | None:
    """The first place that holds every file of `model`; None when there is none."""
    folders = (place / model.name for place in _places())
    return next((folder for folder in folders if all((folder / name).is_file() for name in model.files)), None)


def cache_folder() -> Path:
    """Where fetched models are kept: `speckit/models` in the user's cache (XDG)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "speckit" / "models"


def _places() -> Iterator[Path]:
    if image := os.environ.get("SPECKIT_MODELS"):
        yield Path(image)
    yield _REPOSITORY / "docker" / "models"
    yield cache_folder()


def _place(path: str) -> str:
    if not path.startswith(SCHEME):
        return path
    name = path.removeprefix(SCHEME)
    if name not in CATALOGUE:
        raise SpecError(f"models: {path} is not a model of the kit; there are {', '.join(CATALOGUE)}")
    folder = model_folder(CATALOGUE[name])
    if folder is None:
        raise PrerequisiteError(f"{path} is not on this machine: get it with `speckit models fetch {name}`")
    return str(folder)
