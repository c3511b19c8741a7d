"""Differences in effective server configuration between an arm and its baseline, and what each of them means.

Both configurations are flattened to dotted names and compared whole: whatever is neither part of the arm, nor declared
by the spec, nor known to be without influence is unfair, so a flag that nobody has heard of counts as unfair.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kit.analysis.results import FlagClass, FlagDifference
from kit.records import Launch, Role
from kit.sglang import effective_config, named_models
from kit.spec import Arm, BaselineArm, Spec

__all__ = ["arm_server_infos", "flag_differences", "server_differences"]

# What makes an arm an arm. Flags of the draft model are compared between speculating arms instead.
_INTENDED = ("speculative_", "max_speculative_")
_DRAFT = (
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_draft_model_revision",
    "speculative_draft_model_quantization",
    "speculative_attention_mode",
)
# Addresses, measured values, and values that follow from others in the list.
_HARMLESS = (
    "_",
    "avg_",
    "decode_cuda_graph_memory_gb",
    "dist_init_addr",
    "grpc_port",
    "host",
    "kv_events",
    "last_gen_throughput",
    "launch_command",
    "max_req_input_len",
    "memory_usage",
    "nccl_port",
    "port",
    "pp_max_micro_batch_size",
    "speckit_",
    "standin",
    "startup_time",
    "status",
    "step_time_dict",
    "trace_",
)
# A place on the host, another one for every launch.
_PLACE = "speckit_trace.directory"
_ABSENT = "absent"


def arm_server_infos(launches: Sequence[Launch]) -> dict[str, Mapping[str, Any] | None]:
    """What the first measuring launch of each arm reported about its server; None where nothing did."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for launch in launches:
        if launch.role is Role.MEASURE and found.get(launch.arm) is None:
            found[launch.arm] = launch.server_info
    return found


def flag_differences(spec: Spec, infos: Mapping[str, Mapping[str, Any] | None]) -> tuple[FlagDifference, ...]:
    """Every difference between a speculating arm and its baseline, then of drafts between speculating arms.

    `infos` maps an arm's name to its `/server_info`; an arm without one takes no part.
    """
    configs = {
        name: dict(_flat(effective_config(named_models(info, spec))))
        for name, info in infos.items()
        if info is not None
    }
    return (*_against_baselines(spec, configs), *_between_drafts(spec, configs))


def server_differences(
    spec: Spec, mine: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Flag and both values, as JSON text, wherever two servers of one arm differ in what can move a number."""
    configs = [dict(_flat(effective_config(named_models(info, spec)))) for info in (mine, theirs)]
    for flag, one, other in _differing(*configs):
        if not _starts(flag, _HARMLESS):
            yield flag, one, other


def _against_baselines(spec: Spec, configs: Mapping[str, Mapping[str, str]]) -> Iterator[FlagDifference]:
    for arm in spec.arms:
        reference = spec.reference(arm)
        if reference is None or arm.name not in configs or reference.name not in configs:
            continue
        declared = (*_declared(arm), *_declared(reference))
        for flag, mine, theirs in _differing(configs[arm.name], configs[reference.name]):
            yield FlagDifference(arm.name, reference.name, flag, mine, theirs, _classify(flag, declared))


def _between_drafts(spec: Spec, configs: Mapping[str, Mapping[str, str]]) -> Iterator[FlagDifference]:
    """The draft must be one and the same; it is compared with that of the first speculating arm."""
    drafting = [arm for arm in spec.arms if not isinstance(arm, BaselineArm) and arm.name in configs]
    for arm in drafting[1:]:
        declared = (*_declared(arm), *_declared(drafting[0]))
        for flag, mine, theirs in _differing(configs[arm.name], configs[drafting[0].name]):
            if flag in _DRAFT:
                unfair = FlagClass.INTENDED if _starts(flag, declared) else FlagClass.UNFAIR
                yield FlagDifference(arm.name, drafting[0].name, flag, mine, theirs, unfair)


def _differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for flag in sorted((mine.keys() | theirs.keys()) - {_PLACE}):
        pair = mine.get(flag, _ABSENT), theirs.get(flag, _ABSENT)
        if pair[0] != pair[1]:
            yield flag, *pair


def _classify(flag: str, declared: Sequence[str]) -> FlagClass:
    if _starts(flag, _INTENDED) or _starts(flag, declared):
        return FlagClass.INTENDED
    return FlagClass.HARMLESS if _starts(flag, _HARMLESS) else FlagClass.UNFAIR


def _starts(flag: str, names: Sequence[str]) -> bool:
    """Whether `flag` is one of `names`, lies inside it, or begins with a name that ends in an underscore."""
    return any(flag == name or flag.startswith(name if name.endswith("_") else f"{name}.") for name in names)


def _declared(arm: Arm) -> Iterator[str]:
    """Flags that the spec itself sets for this arm alone, and what follows from them."""
    overrides = arm.server
    if overrides.attention_backend is not None:
        yield from ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    if overrides.page_size is not None:
        yield "page_size"
    if overrides.mem_fraction_static is not None:
        yield from ("mem_fraction_static", "max_total_num_tokens")
    for flag in overrides.extra_flags:
        yield flag.replace("-", "_")


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, JSON text) of every leaf; an empty mapping is a leaf."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{name}.")
        else:
            yield name, json.dumps(item, sort_keys=True, default=str)
