"""Our words to SGLang's: the flags that start a server and the body of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kit.spec import AdaptiveArm, Arm, BaselineArm, Eagle3Arm, Server, Spec, Workload

__all__ = ["adaptive_config_text", "generate_payload", "launch_flags", "outputs_payload", "prefill_payload"]

Flag = str | int | float | bool | None
_CHOICES = {"return_logprob": True, "top_logprobs_num": 2}


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


def _arguments(flags: Mapping[str, Flag]) -> Iterator[str]:
    for name, value in flags.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if value is not True:
            yield str(value)


def outputs_payload(text: str, *, rid: str, max_new_tokens: int, reference: bool) -> dict[str, Any]:
    """The body of an answer that is compared token by token: greedy, to its natural end.

    The `reference` also tells the two likeliest tokens of each position, so that a tie can be told from a violation.
    """
    sampling = {"max_new_tokens": max_new_tokens, "temperature": 0.0, "ignore_eos": False}
    body = {"rid": rid, "text": text, "stream": True, "sampling_params": sampling}
    return body | ({"return_prompt_token_ids": True, **_CHOICES} if reference else {})


def prefill_payload(ids: Sequence[int], *, rid: str) -> dict[str, Any]:
    """The body that asks for one token after `ids`, and for the two likeliest ones."""
    sampling = {"max_new_tokens": 1, "temperature": 0.0, "ignore_eos": True}
    return {"rid": rid, "input_ids": list(ids), "stream": True, "sampling_params": sampling, **_CHOICES}


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
