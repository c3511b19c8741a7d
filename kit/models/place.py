"""Where a model named `kit:NAME` lies on this machine, and that it is the one: a spec holds no path.

In this order: the folder SPECKIT_MODELS (images set it), `docker/models` of the repository, the user's cache.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from kit.errors import PrerequisiteError, SpecError
from kit.models.catalogue import CATALOGUE, Model
from kit.spec import KIT_MODEL, Spec

__all__ = ["cache_folder", "hash_problem", "located", "model_folder"]

_REPOSITORY = Path(__file__).resolve().parents[2]


def located(spec: Spec) -> Spec:
    """`spec` with every `kit:NAME` replaced by the folder of that model; other names are left to SGLang.

    Raises SpecError for a name that the kit does not know, PrerequisiteError for a model that is not here yet, or not
    the one of the catalogue.
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


def hash_problem(path: Path, sha256: str) -> str | None:
    """How the file differs from what it should be; None when it is the same."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return None if found == sha256 else f"{path.name} has SHA-256 {found[:12]} instead of {sha256[:12]}"


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
    if not path.startswith(KIT_MODEL):
        return path
    name = path.removeprefix(KIT_MODEL)
    if name not in CATALOGUE:
        raise SpecError(f"models: {path} is not a model of the kit; there are {', '.join(CATALOGUE)}")
    folder = model_folder(CATALOGUE[name])
    if folder is None:
        raise PrerequisiteError(f"{path} is not on this machine: get it with `speckit models fetch {name}`")
    for file, sha256 in CATALOGUE[name].files.items():
        if problem := hash_problem(folder / file, sha256):
            raise PrerequisiteError(f"{path} was changed: {problem}; restore {folder}, or remove it and fetch it again")
    return str(folder)
