"""Values that a source file states literally, worked out from its syntax tree.

Handles what SGLang writes in its argument tables: constants, containers, sums and products, names defined in
the same file or imported from another file of the package, class attributes, `list(...)` of those. Anything
else is not literal, and the caller keeps the expression's text instead of a value.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kit.contract.source import Module, Sources
from kit.errors import SpeckitError

__all__ = ["NotLiteral", "Scope", "assignments"]

_ARITHMETIC: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_CONTAINERS = frozenset({"list", "set", "tuple", "sorted", "frozenset"})
_EMPTY: dict[str, object] = {"list": [], "dict": {}}


class NotLiteral(SpeckitError):
    """The expression depends on something that only running code can tell."""


def assignments(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Names bound exactly once by a plain or annotated assignment directly in `body`."""
    bound: dict[str, ast.expr] = {}
    rebound: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        rebound |= {name} & bound.keys()
        bound[name] = value
    return {name: value for name, value in bound.items() if name not in rebound}


@dataclass(frozen=True, slots=True)
class Scope:
    """Where names are looked up: `local` bindings first, then the module, then what it imports."""

    sources: Sources
    module: Module
    local: Mapping[str, ast.expr] = field(default_factory=dict)

    def value(self, node: ast.expr) -> object:
        """The JSON value of an expression; sets become sorted lists, tuples become lists.

        Raises:
            NotLiteral: the value is not stated in the source.
        """
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name() | ast.Attribute():
                scope, definition = self.definition(node)
                return scope.value(definition)
            case ast.Call():
                return self._call(node)
            case ast.UnaryOp() | ast.BinOp():
                return self._number(node)
        return self._container(node)

    def _number(self, node: ast.UnaryOp | ast.BinOp) -> object:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](self.value(left), self.value(right))
        raise NotLiteral(f"{ast.unparse(node)} is not arithmetic on literals")

    def _container(self, node: ast.expr) -> object:
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._items(items)
            case ast.Set(elts=items):
                return sorted(self._items(items), key=str)
            case ast.Dict(keys=keys, values=values):
                return {str(self._key(key)): self.value(value) for key, value in zip(keys, values, strict=True)}
            case ast.Subscript(value=ast.Name() as container, slice=ast.Constant(value=int(index))):
                return self._items_of(container)[index]
        raise NotLiteral(f"{ast.unparse(node)} is not a literal")

    def definition(self, node: ast.expr) -> tuple[Scope, ast.expr]:
        """Follow a name or a class attribute to the expression it was bound to, and where that stands."""
        match node:
            case ast.Name(id=name) if name in self.local:
                return self, self.local[name]
            case ast.Name(id=name):
                return self._global(name)
            case ast.Attribute(value=ast.Name(id=class_name), attr=attribute):
                owner = self.module_of(class_name)
                body = owner.class_(class_name)
                bound = assignments(body.body) if body is not None else {}
                if attribute in bound:
                    return Scope(self.sources, owner, bound), bound[attribute]
        raise NotLiteral(f"{ast.unparse(node)} is not defined by an assignment")

    def _call(self, node: ast.Call) -> object:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _CONTAINERS:
                items = self._items_of(argument)
                return items if name in {"list", "tuple"} else sorted(items, key=str)
            case ast.Call(func=ast.Attribute(value=mapping, attr="keys"), args=[], keywords=[]):
                scope, definition = self.definition(mapping)
                if isinstance(definition, ast.Dict):
                    return [scope._key(key) for key in definition.keys]
            case ast.Call(func=ast.Attribute(attr="field"), keywords=[ast.keyword(arg="default_factory", value=made)]):
                return self._made(made)
        raise NotLiteral(f"{ast.unparse(node)} is a call")

    def _made(self, factory: ast.expr) -> object:
        match factory:
            case ast.Name(id=name) if name in _EMPTY:
                return _EMPTY[name]
            case ast.Lambda(body=body):
                return self.value(body)
        raise NotLiteral(f"{ast.unparse(factory)} is a factory")

    def _key(self, key: ast.expr | None) -> object:
        if key is None:
            raise NotLiteral("a dictionary is spread into another")
        return self.value(key)

    def _items(self, nodes: list[ast.expr]) -> list[object]:
        items: list[object] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += self._items_of(node.value)
            else:
                items.append(self.value(node))
        return items

    def _items_of(self, node: ast.expr) -> list[object]:
        value = self.value(node)
        if not isinstance(value, list):
            raise NotLiteral(f"{ast.unparse(node)} is not a list")
        return value

    def _global(self, name: str) -> tuple[Scope, ast.expr]:
        owner = self.module_of(name)
        bound = assignments(owner.tree.body)
        if name not in bound:
            raise NotLiteral(f"{name} is not assigned once in {owner.path}")
        return Scope(self.sources, owner), bound[name]

    def module_of(self, name: str) -> Module:
        """The file a name comes from: the one it is imported from inside the package, else this one."""
        for statement in self.module.tree.body:
            if isinstance(statement, ast.ImportFrom) and any((a.asname or a.name) == name for a in statement.names):
                path = f"{(statement.module or '').removeprefix('sglang.').replace('.', '/')}.py"
                if statement.module and statement.module.startswith("sglang.") and self.sources.has(path):
                    return self.sources.module(path)
        return self.module
