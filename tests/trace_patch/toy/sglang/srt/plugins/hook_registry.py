"""Two kinds of hooks, and failures that are swallowed, as in SGLang."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

Function = Callable[..., Any]


class HookType(Enum):
    AFTER = "after"
    AROUND = "around"


class HookRegistry:
    hooks: ClassVar[dict[str, list[tuple[HookType, Function]]]] = {}
    patched: ClassVar[set[str]] = set()
    broken: ClassVar[set[str]] = set()

    @classmethod
    def register(cls, target: str, hook: Function, hook_type: HookType = HookType.AFTER) -> None:
        cls.hooks.setdefault(target, []).append((hook_type, hook))

    @classmethod
    def apply_hooks(cls) -> None:
        for target, hooks in cls.hooks.items():
            if target in cls.patched or target in cls.broken:
                continue
            owner_path, _, name = target.rpartition(".")
            owner = pkgutil.resolve_name(owner_path)
            function = getattr(owner, name)
            for kind, hook in hooks:
                function = _wrapped(function, kind, hook)
            setattr(owner, name, function)
            cls.patched.add(target)


def _wrapped(original: Function, kind: HookType, hook: Function) -> Function:
    @functools.wraps(original)
    def around(*args: Any, **kwargs: Any) -> Any:
        return hook(original, *args, **kwargs)

    @functools.wraps(original)
    def after(*args: Any, **kwargs: Any) -> Any:
        returned = original(*args, **kwargs)
        changed = hook(returned, *args, **kwargs)
        return returned if changed is None else changed

    return around if kind is HookType.AROUND else after
