"""Between our words and SGLang's: launch flags and request payloads out, `meta_info` and `/server_info` in.

The only module (with the stand-in and the contracts) where SGLang's own `spec_*` keys appear.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kit.spec import AdaptiveArm, Arm, BaselineArm, Eagle3Arm, Server, Spec, Workload

__all__ = [
    "ContractViolation",
    "Meta",
    "adaptive_config_text",
    "effective_config",
    "generate_payload",
    "identity_problem",
    "launch_flags",
    "read_meta",
    "redact",
]

Flag = str | int | float | bool | None

# The same count under the names of three generations, newest first.
_CORRECT_DRAFTS = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_SECRET_WORDS = ("api_key", "password", "secret", "authorization", "hf_token", "auth_token", "access_token")


class ContractViolation(ValueError):
    """An answer lacks something that SGLang promises; the message names the key."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What a finished request reports about itself; counts are tokens unless named otherwise.

    `histogram[j]` counts verify rounds with exactly j accepted drafts (bonus excluded, last round not clipped);
    None when the server reports no verify round.
    """

    rid: str
    finish_reason: str
    matched: str | int | None
    prompt_tokens: int | None
    completion_tokens: int
    cached_tokens: int | None
    retractions: int | None
    verify_rounds: int | None
    correct_drafts: int | None
    histogram: tuple[int, ...] | None


def launch_flags(spec: Spec, arm: Arm, *, adaptive_config: str = "adaptive.json") -> tuple[str, ...]:
    """Command-line flags of the server of `arm`, without host and port. Everything SGLang would choose is stated.

    `adaptive_config` is where the caller puts `adaptive_config_text(arm)`, when the arm has one.
    """
    target = spec.models.target
    flags: dict[str, Flag] = {
        "model-path": target.path,
        "revision": target.revision,
        "dtype": target.dtype,
        "quantization": target.quantization,
        "trust-remote-code": target.trust_remote_code,
        **_server_flags(spec.server),
        **{k: v for k, v in _override_flags(arm).items() if v is not None},
        **_speculative_flags(spec, arm, adaptive_config),
        "disable-radix-cache": True,
        "incremental-streaming-output": True,
        "stream-interval": 1,
        **spec.server.extra_flags,
        **arm.server.extra_flags,
    }
    sizes = spec.server.cuda_graph_batch_sizes
    listed = ("--cuda-graph-bs-decode", *map(str, sizes)) if sizes else ()
    return (*_arguments(flags), *listed)


def _server_flags(server: Server) -> dict[str, Flag]:
    return {
        "attention-backend": server.attention_backend,
        "page-size": server.page_size,
        "context-length": server.context_length,
        "max-running-requests": server.max_running_requests,
        "max-total-tokens": server.max_total_tokens,
        "mem-fraction-static": server.mem_fraction_static,
        "chunked-prefill-size": server.chunked_prefill_size,
        "disable-cuda-graph": server.disable_cuda_graph,
        "disable-prefill-cuda-graph": server.disable_prefill_cuda_graph,
        "sampling-backend": server.sampling_backend,
        "tensor-parallel-size": server.tensor_parallel_size,
        "disable-custom-all-reduce": server.disable_custom_all_reduce,
        "enforce-disable-flashinfer-allreduce-fusion": server.disable_allreduce_fusion,
        "random-seed": server.random_seed,
    }


def _override_flags(arm: Arm) -> dict[str, Flag]:
    return {
        "attention-backend": arm.server.attention_backend,
        "page-size": arm.server.page_size,
        "mem-fraction-static": arm.server.mem_fraction_static,
    }


def _speculative_flags(spec: Spec, arm: Arm, adaptive_config: str) -> dict[str, Flag]:
    draft = spec.models.draft
    if isinstance(arm, BaselineArm) or draft is None:
        return {}
    shape: dict[str, Flag] = {
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": draft.path,
        "speculative-draft-model-revision": draft.revision,
        "speculative-draft-model-quantization": draft.quantization,
        "speculative-num-steps": arm.num_steps,
    }
    if isinstance(arm, Eagle3Arm):
        return shape | {"speculative-eagle-topk": arm.topk, "speculative-num-draft-tokens": arm.draft_tokens}
    return shape | {
        "speculative-eagle-topk": 1,
        "speculative-num-draft-tokens": arm.num_steps + 1,
        "speculative-adaptive": True,
        "speculative-adaptive-config": adaptive_config if arm.candidates else None,
    }


def adaptive_config_text(arm: Arm) -> str | None:
    """The ladder of an adaptive arm as SGLang reads it from a file, one object a batch-size slot; None for its own."""
    if not isinstance(arm, AdaptiveArm) or arm.candidates is None:
        return None
    return json.dumps({slot: {"candidate_steps": list(steps)} for slot, steps in arm.candidates.items()})


def _topk(arm: Eagle3Arm | AdaptiveArm) -> int:
    return arm.topk if isinstance(arm, Eagle3Arm) else 1


def _arguments(flags: Mapping[str, Flag]) -> Iterator[str]:
    for name, value in flags.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if value is not True:
            yield str(value)


def generate_payload(text: str, *, rid: str, max_new_tokens: int, workload: Workload) -> dict[str, Any]:
    """The body of `POST /generate`; warm-up and timed requests have exactly this shape."""
    return {
        "rid": rid,
        "text": text,
        "stream": True,
        "sampling_params": {
            "max_new_tokens": max_new_tokens,
            "temperature": workload.temperature,
            "ignore_eos": workload.ignore_eos,
        },
    }


def read_meta(meta: Mapping[str, Any], *, speculative: bool) -> Meta:
    """The counts in a final `meta_info`.

    Raises ContractViolation when a promised key is missing: under speculation a request of more than one token
    has had a verify round, and then its counts must be there under one of the names SGLang has used.
    """
    finish = meta.get("finish_reason")
    if not isinstance(finish, Mapping) or "type" not in finish:
        raise ContractViolation(f"meta_info.finish_reason is {finish!r} on a final answer")
    completion = _count(meta, ("completion_tokens",))
    if completion is None:
        raise ContractViolation("meta_info.completion_tokens is missing")
    rounds = _count(meta, ("spec_verify_ct",))
    if speculative and rounds is None and completion > 1 and finish["type"] != "abort":
        raise ContractViolation("meta_info.spec_verify_ct is missing although the server speculates")
    return Meta(
        rid=str(meta.get("id", "")),
        finish_reason=str(finish["type"]),
        matched=finish.get("matched"),
        prompt_tokens=_count(meta, ("prompt_tokens",)),
        completion_tokens=completion,
        cached_tokens=_count(meta, ("cached_tokens",)),
        retractions=_count(meta, ("num_retractions",)),
        verify_rounds=rounds,
        correct_drafts=_count(meta, _CORRECT_DRAFTS) if rounds else None,
        histogram=_histogram(meta) if rounds else None,
    )


def _count(meta: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = meta.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ContractViolation(f"meta_info.{name} is {value!r}, not a count")
        return value
    return None


def _histogram(meta: Mapping[str, Any]) -> tuple[int, ...]:
    name = next((name for name in _HISTOGRAM if name in meta), None)
    if name is None:
        raise ContractViolation(f"none of {', '.join(_HISTOGRAM)} is in meta_info although spec_verify_ct is")
    values = meta[name]
    if not isinstance(values, list) or any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in values):
        raise ContractViolation(f"meta_info.{name} is {values!r}, not a list of counts")
    return tuple(values)


def effective_config(server_info: Mapping[str, Any]) -> dict[str, Any]:
    """What the server really runs with: `internal_states[0]` wins over the top level, which is what was asked for."""
    states = server_info.get("internal_states") or [{}]
    top = {key: value for key, value in server_info.items() if key != "internal_states"}
    return {**top, **states[0]}


def identity_problem(server_info: Mapping[str, Any], spec: Spec, arm: Arm) -> str | None:
    """Why the server that answers cannot be the one launched for `arm`; None when it can."""
    found = effective_config(server_info)
    expected: dict[str, Any] = {"model_path": spec.models.target.path, "speculative_algorithm": None}
    if not isinstance(arm, BaselineArm):
        expected |= {"speculative_algorithm": "EAGLE3", "speculative_eagle_topk": _topk(arm)}
    wrong = [
        f"{name} is {found.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    return f"another server answers for arm `{arm.name}`: {'; '.join(wrong)}" if wrong else None


def redact(server_info: Any) -> Any:
    """`server_info` without the values of keys that can hold a secret."""
    if isinstance(server_info, Mapping):
        return {k: _hidden(k, v) for k, v in server_info.items()}
    if isinstance(server_info, list):
        return [redact(value) for value in server_info]
    return server_info


def _hidden(key: str, value: Any) -> Any:
    secret = isinstance(value, str) and value and any(word in key.lower() for word in _SECRET_WORDS)
    return "REDACTED" if secret else redact(value)
