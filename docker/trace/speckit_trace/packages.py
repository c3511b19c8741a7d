"""Versions of what makes a server fast or slow, as installed beside it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["packages"]

_NAMES = (
    "sglang",
    "torch",
    "triton",
    "flashinfer-python",
    "flashinfer-cubin",
    "sglang-kernel",
    "sgl-kernel",
    "transformers",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
)


def packages() -> dict[str, str]:
    """Those that are installed, by their name on the index."""
    return {name: found for name in _NAMES if (found := _version(name)) is not None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
