"""Models small enough for a laptop that a spec names without a path: `kit:NAME`, fetched once, checked by hash."""

from kit.models.catalogue import CATALOGUE, Model, Package
from kit.models.fetch import fetch
from kit.models.place import SCHEME, located, model_folder

__all__ = ["CATALOGUE", "SCHEME", "Model", "Package", "fetch", "located", "model_folder"]
