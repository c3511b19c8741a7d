"""Values that a source file states literally, worked out from its syntax tree.

Handles what SGLang writes in its argument tables: constants, containers, sums and products, names defined in
the same file or imported from another file of the package, class attributes, `list(...)` of those. Anything
else is not literal, and the caller keeps the expression's text instead of a value.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kit.contract.source import Module, Sources
from kit.errors import SpeckitError

__all__ = ["NotLiteral", "Scope"]

Json = object

_BINARY: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


class NotLiteral(SpeckitError):
    """The expression depends on something that only running code can tell."""
