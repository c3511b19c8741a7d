"""Expected documents, reviewed in the diff: run the tests with SPECKIT_UPDATE_GOLDEN=1 to write them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def golden(name: str, *, actual: str) -> str:
    """The text that is expected under that name."""
    path = FOLDER / name
    if os.environ.get("SPECKIT_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(actual, encoding="utf-8")
    return path.read_text(encoding="utf-8")
