"""Reading a spec file: YAML to a frozen `Spec`, or one line that names file, line, field and value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kit.errors import SpecError
from kit.spec.model import SCHEMA_VERSION, Spec
from kit.spec.rules import faults

__all__ = ["load_spec", "parse_spec"]

_MAX_BYTES = 1_000_000
_MAX_NODES = 20_000
FieldPath = tuple[str | int, ...]


def load_spec(path: Path) -> Spec:
    """The validated spec in `path`.

    Raises SpecError naming file, line, field, value and remedy for anything that is wrong with it.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read ({error.strerror}); name a spec file, for instance specs/quickstart.yaml"
        ) from None
    if len(text) > _MAX_BYTES:
        raise SpecError(f"{path}: {len(text):,} bytes is too large for a spec; the limit is {_MAX_BYTES:,}")
    try:
        return parse_spec(text.decode("utf-8"), name=str(path))
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def parse_spec(text: str, *, name: str) -> Spec:
    """The validated spec in `text`; `name` stands in messages for the file."""
    root = _compose(text, name)
    _refuse_unknown_version(root, name)
    try:
        data = yaml.safe_load(text)
        spec = Spec.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        raise SpecError(_describe(error, root, name)) from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"{name}: a value is not plain text, number, list or mapping ({error}); quote it") from None
    for fault in faults(spec):
        raise SpecError(f"{name}:{_line(root, fault.path)}: {_dotted(fault.path)}: {fault.message}")
    return spec


def _compose(text: str, name: str) -> yaml.MappingNode:
    """The node tree, which knows lines; refuses duplicate keys, aliases and files that are not a mapping."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"{name}:{line}: not YAML: {error.problem}; fix the line") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(f"{name}: not YAML: {error}".splitlines()[0]) from None
    if not isinstance(root, yaml.MappingNode):
        raise SpecError(f"{name}: a spec is a mapping of fields; start from specs/quickstart.yaml")
    seen: set[int] = set()
    for node in _walk(root, name):
        if id(node) in seen or len(seen) >= _MAX_NODES:
            raise SpecError(
                f"{name}:{node.start_mark.line + 1}: YAML aliases are not allowed in a spec; write the value out"
            )
        seen.add(id(node))
    return root


def _walk(root: yaml.Node, name: str) -> Iterator[yaml.Node]:
    """Every node; raises SpecError at a key that stands twice in one mapping."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            for key, _ in node.value:
                if keys.count(key.value) > 1:
                    raise SpecError(f"{name}:{key.start_mark.line + 1}: `{key.value}` is given twice; keep one")
            pending.extend(value for _, value in node.value)


def _refuse_unknown_version(root: yaml.MappingNode, name: str) -> None:
    version = next((value for key, value in root.value if key.value == "schema_version"), None)
    if isinstance(version, yaml.ScalarNode) and version.value.isdigit() and int(version.value) > SCHEMA_VERSION:
        raise SpecError(
            f"{name}:{version.start_mark.line + 1}: schema_version {version.value} is newer than this kit's "
            f"{SCHEMA_VERSION}; update the kit"
        )


def _describe(error: ValidationError, root: yaml.MappingNode, name: str) -> str:
    """The first problem pydantic found, in the words of the file."""
    first = error.errors(include_url=False)[0]
    path = tuple(
        part
        for part in first["loc"]
        if part not in ("baseline", "eagle3", "adaptive") or not _is_tag(first["loc"], part)
    )
    value = "" if isinstance(first["input"], dict | list) else f" (value {_short(first['input'])})"
    more = f"; {error.error_count() - 1} more after this" if error.error_count() > 1 else ""
    return f"{name}:{_line(root, path)}: {_dotted(path)}: {_reason(first['type'], first['msg'])}{value}{more}"


def _is_tag(loc: FieldPath, part: str | int) -> bool:
    """Whether `part` is the discriminator that pydantic puts after the index of an arm."""
    at = loc.index(part)
    return at == 2 and loc[0] == "arms"


def _reason(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown field; see docs/spec.md for the fields there are"
    if kind == "missing":
        return "missing; add it"
    return message.removeprefix("Value error, ")


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _dotted(path: FieldPath) -> str:
    return ".".join(str(part) for part in path) or "spec"


def _line(root: yaml.Node, path: FieldPath) -> int:
    """Line (from 1) of the deepest part of `path` that the file contains."""
    node, line = root, 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line
