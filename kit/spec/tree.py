"""YAML text to plain data whose every value still knows its line. What a spec does not need is refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from kit.errors import SpecError

__all__ = ["FieldPath", "Tree", "read_tree"]

FieldPath = tuple[str | int, ...]

_MAX_DEPTH = 20
_YAML = "tag:yaml.org,2002:"

_NUMBERS: dict[str, Callable[[str], int | float]] = {"int": int, "float": float}
_READERS: dict[str, Callable[[str], Any]] = {
    **_NUMBERS,
    "str": str,
    "null": lambda _: None,
    "bool": lambda word: word.lower() in ("true", "yes", "on"),
}

# YAML 1.1 also reads 1:30 as ninety and 010 as eight, and later versions do not: neither is a number here.
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})?(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")


class Tree:
    """A YAML mapping: its plain data, and the line on which each part of it stands."""

    def __init__(self, root: yaml.MappingNode, name: str) -> None:
        self._root = root
        self._name = name
        self.data: Any = _plain(root, (), name)

    def error(self, path: FieldPath, message: str) -> SpecError:
        """One line that names file, line and field before `message`."""
        return SpecError(f"{self._name}:{self.line(path)}: {dotted(path)}: {message}")

    def line(self, path: FieldPath) -> int:
        """Line (from 1) of the deepest part of `path` that the file contains."""
        node: yaml.Node = self._root
        line = node.start_mark.line + 1
        for part in self.known(path):
            node, line = _child(node, part)
        return line

    def known(self, path: FieldPath) -> FieldPath:
        """The part of `path` that the file contains."""
        value = self.data
        for depth, part in enumerate(path):
            inside = part in value if isinstance(value, dict) else isinstance(part, int) and isinstance(value, list)
            if not inside:
                return path[:depth]
            value = value[part]
        return path


def read_tree(text: str, *, name: str) -> Tree:
    """The mapping in `text`; `name` stands in messages for the file.

    Raises SpecError for anything but one mapping of plain values: text, numbers, booleans, null, lists, mappings.
    """
    try:
        root = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"{name}:{line}: {_explained(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = f"U+{ord(text[error.position]):04X}"
        raise SpecError(f"{name}:{line}: the character {code} is not allowed in YAML; remove it") from None
    if not isinstance(root, yaml.MappingNode):
        raise SpecError(f"{name}:1: a spec is a mapping of fields; start from specs/quickstart.yaml")
    return Tree(root, name)


def dotted(path: FieldPath) -> str:
    """`path` as users write it; a part that is not a plain word is quoted, so that it stays on the line."""
    return ".".join(_word(str(part)) for part in path) or "spec"


def shown(value: Any) -> str:
    """`value` as JSON on one line, cut at 60 characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


class _Unwanted(yaml.MarkedYAMLError):
    """Legal YAML that a spec may not use."""


class _Loader(yaml.SafeLoader):
    """Refuses aliases, anchors and tags before anything is built from them."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if unwanted := self._unwanted(event):
            field = f"{_word(index.value)}: " if isinstance(index, yaml.ScalarNode) else ""
            raise _Unwanted(problem=field + unwanted, problem_mark=event.start_mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def _unwanted(self, event: Any) -> str | None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            return f"the alias or anchor `{event.anchor}` is not allowed in a spec; write the value out"
        if event.tag is not None:
            return f"the tag {shown(event.tag)} is not allowed in a spec; write a plain value"
        if self._depth >= _MAX_DEPTH:
            return f"nested more than {_MAX_DEPTH} deep, and no field of a spec is; flatten it"
        return None


def _explained(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    if isinstance(error, _Unwanted):
        return problem
    remedy = "indent with spaces" if "'\\t'" in problem else "fix the line"
    return f"not YAML: {problem}; {remedy}"


def _plain(node: yaml.Node, path: FieldPath, name: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, name)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, i), name) for i, item in enumerate(node.value)]
    return _scalar(node, path, name)


def _mapping(node: yaml.MappingNode, path: FieldPath, name: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag != _YAML + "str":
            written = shown(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            raise _at(key, path, name, f"the key {written} is not text; put it in quotes")
        word = _scalar(key, path, name)
        if word in data:
            raise _at(key, (*path, word), name, "given twice; keep one")
        data[word] = _plain(value, (*path, word), name)
    return data


def _scalar(node: yaml.Node, path: FieldPath, name: str) -> Any:
    kind, value = node.tag.removeprefix(_YAML), str(node.value)
    if kind in _NUMBERS and not _DECIMAL.fullmatch(value):
        raise _at(node, path, name, f"not a plain decimal number (value {shown(value)}); write it in decimal digits")
    if re.search("[\ud800-\udfff]", value):
        raise _at(node, path, name, f"half of a surrogate pair (value {shown(value)}); write the character itself")
    if kind in _READERS:
        return _READERS[kind](value)
    raise _at(node, path, name, f"neither text nor number (value {shown(value)}); put it in quotes")


def _at(node: yaml.Node, path: FieldPath, name: str, message: str) -> SpecError:
    return SpecError(f"{name}:{node.start_mark.line + 1}: {dotted(path)}: {message}")


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, int]:
    """The child of `node` called `part`, and the line that names it."""
    if isinstance(node, yaml.MappingNode):
        return next((value, key.start_mark.line + 1) for key, value in node.value if key.value == part)
    child = node.value[part]
    return child, child.start_mark.line + 1


def _word(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_.\-]+", part) else shown(part)
