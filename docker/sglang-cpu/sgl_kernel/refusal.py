"""What these kernels do not do, refused by name instead of computed wrongly."""

from __future__ import annotations

from typing import Never

from torch import Tensor

__all__ = ["Unsupported", "murmur_hash32_cpu", "refuse", "rotate_input_ids_cpu"]


class Unsupported(NotImplementedError):
    """A feature that SGLang asked for and that has no CPU kernel here; the message names it."""


def refuse(feature: str) -> Never:
    """Raise Unsupported for `feature`."""
    raise Unsupported(f"{feature}: not supported by speckit's CPU kernels, which serve Llama-shaped models with EAGLE3")


def rotate_input_ids_cpu(*_: object) -> Never:
    """SGLang imports it at start and calls it for drafts of several layers only."""
    refuse("multi-layer EAGLE")


def murmur_hash32_cpu(seed: Tensor, positions: Tensor, col_indices: Tensor) -> Tensor:
    """SGLang hashes with it when every request brings its own seed. Greedy requests never get here."""
    refuse("seeded sampling (--enable-deterministic-inference)")
