"""What differs when the kit itself runs in its image: whose files it writes, where it may, and what the image holds."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kit.errors import SpeckitError

__all__ = ["baked_facts", "become_owner", "require_writable"]


def baked_facts() -> dict[str, Any]:
    """What the build of the image found in it (docker/check_image.py); empty outside an image."""
    place = os.environ.get("SPECKIT_IMAGE")
    return {"image": json.loads(Path(place).read_text(encoding="utf-8"))} if place else {}


def become_owner(folder: Path) -> None:
    """As root in an image, go on as whoever owns the mounted `folder`, so that no file of root's is left there."""
    if "SPECKIT_IMAGE" not in os.environ or os.geteuid() != 0 or not folder.is_dir():
        return
    owner = folder.stat()
    if owner.st_uid != 0:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def require_writable(folders: Iterable[Path]) -> None:
    """Make each folder and write to it. Raises SpeckitError for the first that refuses."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"speckit")
        except OSError as error:
            raise SpeckitError(
                f"{folder} cannot be written by uid {os.geteuid()} ({error.strerror}); {_remedy()}"
            ) from error


def _remedy() -> str:
    if "SPECKIT_IMAGE" in os.environ:
        return (
            'mount a folder of yours there (-v "$PWD/results:/results") and run as yourself (--user $(id -u):$(id -g))'
        )
    return "check the path, its rights and the disk"
