"""The user's cache of Hugging Face models: where it is, and whether a model is in it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["hub_cache", "is_cached"]


def hub_cache() -> Path:
    """Where this user's Hugging Face models lie."""
    named = os.environ.get("HF_HOME")
    return (Path(named) if named else Path.home() / ".cache" / "huggingface").resolve()


def is_cached(cache: Path, model: str) -> bool:
    """Whether some revision of `model` lies in `cache`."""
    return any((cache / "hub" / f"models--{model.replace('/', '--')}" / "snapshots").glob("*/config.json"))
