"""SGLang's source text, read from a wheel or a folder and parsed, never imported.

Paths are relative to the `sglang` package, as in `srt/managers/scheduler.py`. A function's digest is the
SHA-256 of exactly the text `inspect.getsource` returns for it, so a process that has SGLang loaded can
recompute the digest of the code it really runs and compare.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from kit.errors import ImportFileError

__all__ = ["Function", "Module", "Sources"]

_VERSION_FILE = "_version.py"

_AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """One function or method: where it is, how it is called, what its text hashes to."""

    path: str
    qualified_name: str
    signature: str
    sha256: str

    @property
    def target(self) -> str:
        """Dotted name, as a hook registry or an import would spell it."""
        return f"sglang.{self.path.removesuffix('.py').replace('/', '.')}.{self.qualified_name}"


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed source file."""

    path: str
    text: str
    tree: ast.Module

    def class_(self, name: str) -> ast.ClassDef | None:
        """The top-level class of that name, or None."""
        return next((node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name), None)

    def functions(self, class_name: str | None = None) -> Iterator[Function]:
        """Functions of the module, or methods of one of its classes, in source order."""
        owner = self.tree if class_name is None else self.class_(class_name)
        prefix = "" if class_name is None else f"{class_name}."
        for node in owner.body if owner is not None else ():
            if isinstance(node, _AnyFunction):
                yield Function(self.path, prefix + node.name, _signature(node), self._digest(node))

    def function(self, qualified_name: str) -> Function | None:
        """`name` or `Class.name`; None when the file has no such function."""
        class_name, _, _ = qualified_name.rpartition(".")
        found = [f for f in self.functions(class_name or None) if f.qualified_name == qualified_name]
        # A property and its setter share a name; at run time the later definition is the one in force.
        return found[-1] if found else None

    def _digest(self, node: _AnyFunction) -> str:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        block = inspect.getblock(self.text.splitlines(keepends=True)[first - 1 :])
        return hashlib.sha256("".join(block).encode()).hexdigest()


class Sources:
    """The `sglang` package at a path; remembers each file it was asked for.

    Args:
        path: a wheel file, a folder that holds `sglang/` (an unpacked wheel, a site-packages folder), or
            the package folder itself.

    Raises:
        ImportFileError: nothing like an SGLang package is there.
    """

    def __init__(self, path: Path) -> None:
        self._root = _package_root(path)
        self._modules: dict[str, Module] = {}

    def module(self, path: str) -> Module:
        """The parsed file; raises ImportFileError when it is missing or not Python."""
        if path not in self._modules:
            self._modules[path] = self._parse(path)
        return self._modules[path]

    def has(self, path: str) -> bool:
        """Whether the package holds that file."""
        return self._root.joinpath(path).is_file()

    def version(self) -> str:
        """The version SGLang reports for itself, such as `0.5.15.post1`."""
        for node in self.module(_VERSION_FILE).tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="__version__"), *_], value=ast.Constant(value=str(version))):
                    return version
        raise ImportFileError(f"sglang/{_VERSION_FILE} states no version; give a released wheel")

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file read so far, by path."""
        return {
            path: hashlib.sha256(module.text.encode()).hexdigest() for path, module in sorted(self._modules.items())
        }

    def _parse(self, path: str) -> Module:
        try:
            text = self._root.joinpath(path).read_text(encoding="utf-8")
            return Module(path, text, ast.parse(text))
        except (OSError, KeyError) as error:
            raise ImportFileError(
                f"sglang/{path} is not there; this SGLang is laid out in a way not known yet"
            ) from error
        except (SyntaxError, UnicodeDecodeError) as error:
            raise ImportFileError(f"sglang/{path} is not readable Python ({error}); unpack the wheel again") from error


def _signature(node: _AnyFunction) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"({ast.unparse(node.args)}){returns}"


def _package_root(path: Path) -> Traversable:
    if path.is_file() and zipfile.is_zipfile(path):
        return zipfile.Path(path) / "sglang"
    for root in (path, path / "sglang"):
        if (root / "srt").is_dir():
            return root
    raise ImportFileError(f"{path} holds no SGLang package; give a wheel, an unpacked wheel or its sglang folder")
