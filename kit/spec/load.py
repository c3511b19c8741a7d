"""Reading a spec file: YAML to a frozen `Spec`, or one line that names file, line, field, value and remedy."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from kit.errors import SpecError
from kit.spec.model import SCHEMA_VERSION, Spec
from kit.spec.rules import faults
from kit.spec.strict import StrictModel
from kit.spec.tree import FieldPath, Tree, read_tree, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["load_spec", "parse_spec"]

# Forty times the largest shipped spec; the YAML reader takes a second for this much.
_MAX_BYTES = 200_000


def load_spec(path: Path) -> Spec:
    """The validated spec in `path`.

    Raises SpecError naming file, line, field, value and remedy for anything that is wrong with it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read ({error.strerror}); name a spec file, for instance specs/quickstart.yaml"
        ) from None
    if len(content) > _MAX_BYTES:
        raise SpecError(
            f"{path}: {len(content):,} bytes is too large for a spec, the limit is {_MAX_BYTES:,}; name a spec file"
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"0x{content[error.start]:02X}"
        raise SpecError(f"{path}:{line}: the byte {byte} is not UTF-8; save the file as UTF-8") from None
    return parse_spec(text, name=str(path))


def parse_spec(text: str, *, name: str) -> Spec:
    """The validated spec in `text`; `name` stands in messages for the file."""
    tree = read_tree(text, name=name)
    _refuse_newer_version(tree)
    try:
        spec = Spec.model_validate_json(json.dumps(tree.data))
    except ValidationError as error:
        raise _first_problem(error, tree) from None
    for fault in faults(spec):
        raise tree.error(fault.path, fault.message)
    return spec


def _refuse_newer_version(tree: Tree) -> None:
    """A spec of the future is named as such before its unknown fields are blamed."""
    version = tree.data.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise tree.error(
            ("schema_version",), f"{shown(version)} is newer than this kit's {SCHEMA_VERSION}; update the kit"
        )


def _first_problem(error: ValidationError, tree: Tree) -> SpecError:
    """One problem in the words of the file, and how many fields have others.

    Unknown fields come first: a misspelt field is also a missing one, and the spelling is the news.
    """
    details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
    paths = [_path(detail, tree) for detail in details]
    others = len(set(paths)) - 1
    more = f"; {others} more after this" if others else ""
    return tree.error(paths[0], _reason(details[0], paths[0]) + more)


def _path(detail: ErrorDetails, tree: Tree) -> FieldPath:
    """Where in the file the problem is: pydantic also counts the kind of an arm and the branch of a union."""
    loc = detail["loc"]
    if loc[:1] == ("arms",):
        loc = loc[:2] + loc[3:]
    if detail["type"].startswith("union_tag"):
        return (*loc, "kind")
    return loc if detail["type"] == "missing" else tree.known(loc)


def _reason(detail: ErrorDetails, path: FieldPath) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return f"unknown field; {_suggestion(str(path[-1]))}"
    if kind == "missing":
        return "missing; add it"
    if kind == "union_tag_not_found":
        return "missing; say which kind of arm it is: baseline, eagle3 or adaptive"
    if kind == "union_tag_invalid":
        return f"no such kind of arm (value {shown(value['kind'])}); use baseline, eagle3 or adaptive"
    if kind == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    given = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"value {shown(value)}"
    return f"{detail['msg'].replace('Input should', 'should', 1)} ({given})"


def _suggestion(word: str) -> str:
    near = difflib.get_close_matches(word, sorted(set(_field_names(StrictModel))), n=1)
    return f"did you mean `{near[0]}`?" if near else "docs/spec.md lists the fields there are"


def _field_names(model: type[BaseModel]) -> Iterator[str]:
    yield from model.model_fields
    for part in model.__subclasses__():
        yield from _field_names(part)
