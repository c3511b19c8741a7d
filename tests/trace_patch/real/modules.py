"""SGLang from its wheel, imported as far as its scheduler needs, without torch and without a device.

The plugin loader, the hook registry and the adaptive controller are imported as they are. Of the scheduler's
modules, the classes that matter are executed from SGLang's own files, line for line, and every name those
files import from elsewhere is an object that agrees to anything.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

REDUCED = {
    "sglang.srt.managers.scheduler": {"Scheduler"},
    "sglang.srt.managers.schedule_batch": {"ScheduleBatch", "Req"},
    "sglang.srt.managers.scheduler_components.batch_result_processor": {"SchedulerBatchResultProcessor"},
    "sglang.srt.model_executor.forward_batch_info": {"ForwardMode"},
}
WHOLE = {
    "sglang.srt",
    "sglang.srt.environ",
    "sglang.srt.plugins",
    "sglang.srt.plugins.hook_registry",
    "sglang.srt.debug_utils",
    "sglang.srt.debug_utils.cuda_coredump",
    "sglang.srt.managers",
    "sglang.srt.managers.scheduler_components",
    "sglang.srt.model_executor",
    "sglang.srt.speculative",
    "sglang.srt.speculative.adaptive_runtime_state",
    "sglang.srt.speculative.adaptive_spec_params",
}


class Anything:
    """Agrees to everything, is false, empty and zero; as a decorator or a base class it is not there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        decorated = len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type)
        return args[0] if decorated else Anything()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    __int__ = __index__ = __len__

    def __float__(self) -> float:
        return 0.0

    def __round__(self, digits: int = 0) -> int:
        return 0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def __getitem__(self, key: object) -> Any:
        return Anything()

    def __setitem__(self, key: object, value: object) -> None: ...

    def _same(self, other: object = None) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __mod__ = __or__ = __ror__ = __mul__ = __truediv__ = _same

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


class Loose:
    """Attributes as given; any other is an Anything."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


# Imported by name into the scheduler's file, and needed for what they are.
GIVEN: dict[str, Any] = {
    "GetInternalStateReqOutput": Loose,
    "get_context": lambda: Loose(resolved_server_args_dict=dict),
    "msgspec_to_builtins": lambda value: value,
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the scheduler's modules reduced, the light ones whole, and anything else not at all."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name in WHOLE or (name.partition(".")[0] in sys.stdlib_module_names):
            return None
        if name.partition(".")[0] == "speckit_trace":
            return None
        return importlib.util.spec_from_loader(name, self, is_package=name not in REDUCED)

    def exec_module(self, module: types.ModuleType) -> None:
        wanted = REDUCED.get(module.__name__)
        if wanted is None:
            module.__getattr__ = lambda name: Anything()  # type: ignore[method-assign]
            return
        path = self.root.parent / f"{module.__name__.replace('.', '/')}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if _is_kept(node, wanted)]
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - vars(builtins).keys()
        names: dict[str, Any] = {**dict.fromkeys(used, Anything()), **GIVEN, "__name__": module.__name__}
        exec(compile(tree, str(path), "exec"), names)
        module.__file__ = str(path)
        vars(module).update({name: names[name] for name in wanted})


def _is_kept(node: ast.stmt, wanted: set[str]) -> bool:
    match node:
        case ast.Import(names=[ast.alias(name=name), *_]) | ast.ImportFrom(module=str(name)):
            return name.partition(".")[0] in sys.stdlib_module_names
        case ast.ClassDef(name=name):
            return name in wanted
    return isinstance(node, ast.FunctionDef)


def prepare() -> str:
    """Makes SGLang importable as far as needed; its version."""
    found = distribution("sglang")
    root = Path(str(found.locate_file("sglang")))
    package = types.ModuleType("sglang")
    package.__path__ = [str(root)]
    package.__version__ = found.version  # type: ignore[attr-defined]
    sys.modules["sglang"] = package
    sys.meta_path.insert(0, Finder(root))
    return found.version
