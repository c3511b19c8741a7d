"""Lets the torchvision of the ordinary index, which is built for CUDA, import beside a CPU build of torch.

Its compiled half cannot load there, and its Python half then describes two operators that nobody has declared. SGLang
imports torchvision but never calls it for text, so declaring them is enough. `speckit_sglang_cpu.pth` imports
this module at every start of Python: nothing happens until torchvision is imported.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

__all__: list[str] = []

# Declarations end with the object that made them.
_kept: list[Any] = []


class _BeforeTorchvision(MetaPathFinder):
    """Finds nothing; is only asked before the first import of torchvision."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            _declare()


def _declare() -> None:
    import torch

    if torch.version.cuda is None and "+cpu" not in importlib.metadata.version("torchvision"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


sys.meta_path.insert(0, _BeforeTorchvision())
