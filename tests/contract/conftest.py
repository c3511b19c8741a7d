"""A miniature SGLang on disk: the same shapes as the real package, a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kit.contract.source import Sources

Package = Callable[[Mapping[str, str]], Sources]


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """Writes files of an `sglang` package, given by path and text, and opens it."""

    def write(files: Mapping[str, str]) -> Sources:
        (tmp_path / "sglang" / "srt").mkdir(parents=True)
        for path, text in {"_version.py": "__version__ = version = '9.9.9'\n", **files}.items():
            file = tmp_path / "sglang" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Sources(tmp_path)

    return write
