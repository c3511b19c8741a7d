"""Models small enough for a laptop that a spec names without a path: `kit:NAME`, fetched once, checked by hash."""

from kit.models.catalogue import CATALOGUE, Model, Package
from kit.models.fetch import fetch
from kit.models.place import located, model_folder

__all__ = ["CATALOGUE", "Model", "Package", "fetch", "located", "model_folder"]
