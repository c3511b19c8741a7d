"""Writes speckit_trace/known.json: digests of the reviewed functions, from SGLang's wheels.

    python docker/trace/known.py WHEEL... > docker/trace/speckit_trace/known.json

Reads the wheels' text without importing it. Run it after the functions of a new version have been read; its
output is a claim that somebody did.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from speckit_trace.targets import HOOKED, WITNESSES

# Module, class, method: the shape of every reviewed path.
_PARTS = 2


def digests(wheel: Path) -> dict[str, str]:
    """SHA-256 of what inspect.getsource would give, by dotted path; a missing function raises KeyError."""
    with zipfile.ZipFile(wheel) as archive:
        return {path: _digest(archive, path) for path in (*HOOKED, *WITNESSES)}


def _digest(archive: zipfile.ZipFile, path: str) -> str:
    module, class_name, name = path.rsplit(".", _PARTS)
    text = archive.read(f"{module.replace('.', '/')}.py").decode()
    owner = _named(ast.parse(text).body, class_name)
    function = _named(owner.body, name)
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    block = inspect.getblock(text.splitlines(keepends=True)[first - 1 :])
    return hashlib.sha256("".join(block).encode()).hexdigest()


def _named(body: Iterable[ast.stmt], name: str) -> ast.ClassDef | ast.FunctionDef:
    found = [n for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name]
    if not found:
        raise KeyError(name)
    return found[-1]


if __name__ == "__main__":
    wheels = map(Path, sys.argv[1:])
    json.dump({wheel.name.split("-")[1]: digests(wheel) for wheel in wheels}, sys.stdout, indent=1)
    print()
