"""A drawn figure, for those who use it and need no drawing library for it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Picture"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG text, the same as PNG, and what it shows in words, for those who cannot see it."""

    svg: str
    png: bytes
    alt: str
