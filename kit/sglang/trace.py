"""What a server proves about its iteration trace: the block `speckit_trace` of `/server_info` (docs/trace.md 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kit.sglang.server import effective_config

__all__ = ["TRACE_BLOCK", "TracePlugin", "trace_plugin", "trace_problem"]

TRACE_BLOCK = "speckit_trace"


@dataclass(frozen=True, slots=True)
class TracePlugin:
    """The plugin that traced a server. `reviewed_as` is the SGLang version that its hooked sources are known from.

    With `override` nobody reviewed those sources: what the records mean is a guess. `packages` are (name, version) of
    what is installed beside the server, sorted by name.
    """

    version: str
    sha: str | None
    reviewed_as: str | None
    override: bool
    packages: tuple[tuple[str, str], ...] = ()


def trace_plugin(server_info: Mapping[str, Any]) -> TracePlugin | None:
    """The plugin that the server says traces it; None where it says nothing."""
    block = _block(server_info)
    if block is None:
        return None
    return TracePlugin(
        version=str(block.get("version")),
        sha=block.get("sha"),
        reviewed_as=block.get("reviewed_as"),
        override=bool(block.get("override")),
        packages=_packages(block.get("packages")),
    )


def _packages(told: object) -> tuple[tuple[str, str], ...]:
    """Whatever is no mapping of texts was not told."""
    return tuple(sorted((str(name), str(version)) for name, version in told.items())) if isinstance(told, dict) else ()


def trace_problem(server_info: Mapping[str, Any], *, enabled: bool | None = None, warm: bool = False) -> str | None:
    """Why a server's trace does not prove what it runs; None when it may.

    Args:
        enabled: whether it should be recording now; None where that was left to the server.
        warm: iterations have run with the recording on, so that some must have been recorded.
    """
    block = _block(server_info)
    if block is None:
        return f"/server_info has no `{TRACE_BLOCK}`: install docker/trace beside SGLang (docs/trace.md)"
    if block.get("dropped"):
        return f"the trace dropped {block['dropped']} iterations, as it stopped: {block.get('stopped')}"
    if block.get("stopped"):
        return f"the trace stopped: {block['stopped']}; free disk space or read docs/trace.md 4"
    if enabled is not None and block.get("enabled") is not enabled:
        return (
            f"the trace is {'off' if enabled else 'on'} and should not be; its control word is {block.get('control')!r}"
        )
    if warm and not block.get("records"):
        return "the trace recorded no iteration although requests were answered: its hooks were never called"
    return None


def _block(server_info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    block = effective_config(server_info).get(TRACE_BLOCK)
    return block if isinstance(block, Mapping) else None
