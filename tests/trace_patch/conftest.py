"""A toy `sglang`, imported anew for every test that asks for it, with and without the plugin installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from speckit_trace import plugin, targets

TOY = Path(__file__).parent / "toy"


@dataclass(frozen=True)
class Toy:
    """The toy's modules that tests speak to; typed loosely because they are imported anew for every test."""

    scheduler: Any
    batch: Any
    processor: Any
    adaptive: Any
    registry: Any
    directory: Path


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Toy]:
    monkeypatch.syspath_prepend(str(TOY))
    _forget_sglang()
    yield Toy(
        scheduler=_module("managers.scheduler"),
        batch=_module("managers.schedule_batch"),
        processor=_module("managers.scheduler_components.batch_result_processor"),
        adaptive=_module("speculative.adaptive_runtime_state"),
        registry=_module("plugins.hook_registry"),
        directory=tmp_path / "trace",
    )
    _forget_sglang()


@pytest.fixture
def traced(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The toy with the plugin installed, its sources declared reviewed."""
    paths = (*targets.HOOKED, *targets.WITNESSES)
    found = {path: targets.source_digest(targets.resolve(path)) for path in paths}
    monkeypatch.setattr(targets, "known_digests", lambda: {"toy": found})
    monkeypatch.setenv(plugin.DIRECTORY, str(toy.directory))
    plugin.install()
    return toy


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"sglang.srt.{name}")


def _forget_sglang() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        del sys.modules[name]
