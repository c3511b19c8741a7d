"""The plugin hooks in on a CPU engine only, and torchvision imports beside a CPU build of torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from sglang.srt.plugins.hook_registry import HookRegistry
from speckit_sglang_cpu import plugin


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Targets that were hooked while the test ran."""
    targets: list[str] = []
    monkeypatch.setattr(HookRegistry, "register", lambda target, *_: targets.append(target))
    return targets


def test_nothing_is_hooked_unless_sglang_runs_on_the_cpu(hooked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_USE_CPU_ENGINE", raising=False)
    plugin.install()
    assert hooked == []
    monkeypatch.setenv("SGLANG_USE_CPU_ENGINE", "1")
    plugin.install()
    assert [target.rsplit(".", 1)[1] for target in hooked] == ["_create_backend", "init_attention_backends"]


def test_a_draft_gets_the_cpu_attention_under_the_name_that_sglang_asks_for() -> None:
    def original(factory: str, name: str, backends: dict[str, Any], template: str) -> dict[str, Any]:
        return backends

    made = plugin._create_draft_backend(original, "factory", "decode", {"intel_amx": 1, "triton": 2}, "template")
    assert made == {"intel_amx": 1, "triton": 2, "torch_native": 1}
    assert plugin._create_draft_backend(original, "factory", "decode", {"triton": 2}, "template") == {"triton": 2}


def test_torchvision_imports_in_a_fresh_interpreter() -> None:
    subprocess.run([sys.executable, "-c", "import torchvision"], check=True, timeout=120)
