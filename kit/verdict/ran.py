"""What ran, as data: enough to repeat the run, or to refuse a comparison with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from kit.analysis import Analysis
from kit.records import Launch, RunFacts
from kit.sglang import TracePlugin, effective_config, named_models, trace_plugin
from kit.spec import KIT_MODEL, Spec
from kit.verdict.results import LaunchRow, Named, TracedBy, WhatRan

__all__ = ["what_ran"]

# Facts of the host that have their own place in the verdict.
_ELSEWHERE = ("simulated_truth",)


def what_ran(facts: RunFacts, spec: Spec, analysis: Analysis) -> WhatRan:
    """Identity of the run, its models, engine, host and launches."""
    header = facts.header
    return WhatRan(
        origin=header.origin,
        run_id=header.run_id,
        spec_name=header.spec_name,
        spec_hash=header.spec_hash,
        workload_hash=header.workload_hash,
        rules_version=header.rules_version,
        kit_version=header.kit_version,
        created_utc=header.created_utc,
        spec_commit=header.spec_commit,
        spec_committed_utc=header.spec_committed_utc,
        declarations=header.declarations,
        resumptions=facts.resumptions,
        models=tuple(_models(spec)),
        engine=tuple(_engine(facts, spec)),
        host=tuple(_flat({k: v for k, v in header.host.items() if k not in _ELSEWHERE})),
        arms=analysis.arms,
        launches=tuple(_row(launch, spec) for launch in facts.launches),
        iteration_times=analysis.iteration_times,
        trace=_traced_by(facts.launches),
        trace_costs=analysis.trace_costs,
        gpus=analysis.gpus,
        energies=analysis.energies,
    )


def _models(spec: Spec) -> Iterator[Named]:
    for role, model in (("target", spec.models.target), ("draft", spec.models.draft)):
        if model is not None:
            yield Named(role, model.path)
            held = "by SHA-256, in the kit" if model.path.startswith(KIT_MODEL) else "not stated"
            yield Named(f"{role} revision", model.revision or held)
            if model.quantization is not None:
                yield Named(f"{role} quantization", model.quantization)
    yield Named("dtype", spec.models.target.dtype)


def _engine(facts: RunFacts, spec: Spec) -> Iterator[Named]:
    versions = sorted(
        {
            str(effective_config(launch.server_info).get("version"))
            for launch in facts.launches
            if launch.server_info is not None
        }
    )
    yield Named("runtime", spec.engine.runtime)
    yield Named("SGLang, asked for", spec.engine.sglang)
    yield Named("SGLang, answered", ", ".join(versions) or "nobody said")
    for name, value in (("image", spec.engine.image), ("world", spec.engine.world)):
        if value is not None:
            yield Named(name, value)
    yield from _packages(facts.launches)
    yield Named("attention backend", spec.server.attention_backend)
    yield Named("page size", str(spec.server.page_size))
    yield Named("max running requests", str(spec.server.max_running_requests))
    yield Named("tensor-parallel size", str(spec.server.tensor_parallel_size))


def _packages(launches: Sequence[Launch]) -> Iterator[Named]:
    """What was installed beside the servers; two versions of one package are a finding."""
    plugins = [trace_plugin(launch.server_info) for launch in launches if launch.server_info is not None]
    told = {pair for plugin in plugins if plugin is not None for pair in plugin.packages if pair[0] != "sglang"}
    for name in sorted({name for name, _ in told}):
        yield Named(
            f"{name}, beside the server", ", ".join(sorted(version for known, version in told if known == name))
        )


def _traced_by(launches: Sequence[Launch]) -> tuple[TracedBy, ...]:
    """The launches whose server described itself, by the trace plugin that it named."""
    found: dict[TracePlugin | None, list[int]] = {}
    for launch in launches:
        if launch.server_info is not None:
            found.setdefault(trace_plugin(launch.server_info), []).append(launch.launch)
    return tuple(TracedBy(tuple(numbers), plugin) for plugin, numbers in found.items())


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[Named]:
    """Leaves of a nested mapping under dotted names; whatever is no plain text is shown as JSON."""
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{prefix}{key}.")
        elif item is not None:
            yield Named(f"{prefix}{key}", item if isinstance(item, str) else json.dumps(item, default=str))


def _row(launch: Launch, spec: Spec) -> LaunchRow:
    """Without the places where interpreter and models lay on the host."""
    command = named_models(launch.command, spec)
    return LaunchRow(
        launch=launch.launch,
        block=launch.block,
        position=launch.position,
        arm=launch.arm,
        role=launch.role,
        status=launch.status,
        started_utc=launch.started_utc,
        startup_s=launch.startup_s,
        command=(*(PurePath(program).name for program in command[:1]), *command[1:]),
        failure=launch.failure,
    )
