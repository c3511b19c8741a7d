"""The spec that a capture would have had, read back from what its servers report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from kit.errors import ImportFileError
from kit.importers.capture_rows import ADAPTIVE, BASELINE, Row, arm_name
from kit.importers.server_log import log_dtype
from kit.sglang import effective_config
from kit.spec import Spec, canonical_json

__all__ = ["ServerInfos", "capture_spec"]

ServerInfos = Mapping[str, Mapping[str, Any] | None]
Json = dict[str, Any]

# Fields of the spec's server section and the names under which a server reports them.
_SERVER_FIELDS = {
    "attention_backend": "attention_backend",
    "page_size": "page_size",
    "max_running_requests": "max_running_requests",
    "max_total_tokens": "max_total_tokens",
    "mem_fraction_static": "mem_fraction_static",
    "chunked_prefill_size": "chunked_prefill_size",
    "cuda_graph_batch_sizes": "cuda_graph_bs_decode",
    "disable_cuda_graph": "disable_cuda_graph",
    "disable_prefill_cuda_graph": "disable_prefill_cuda_graph",
    "sampling_backend": "sampling_backend",
    "tensor_parallel_size": "tp_size",
    "disable_custom_all_reduce": "disable_custom_all_reduce",
    "random_seed": "random_seed",
}


def capture_spec(rows: Sequence[Row], *, infos: ServerInfos, logs: Mapping[str, str], name: str) -> Spec:
    """A spec whose arms are those of the capture and whose flags are the effective ones.

    Raises ImportFileError when a server reports something that no spec can say.
    """
    config = effective_config(_first_info(infos))
    data = {
        "schema_version": 1,
        "name": re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:60] or "capture",
        "title": f"Imported capture {name}",
        "question": "What does this recorded capture show, and what can it not show?",
        "models": _models(infos, logs),
        "engine": {"runtime": "attach", "sglang": str(config.get("version"))},
        "server": _server(config),
        "arms": [_arm(label, infos.get(label)) for label in _labels(rows)],
        "workload": _workload(rows),
        "load": _load(rows),
        "design": {"blocks": 1},
        "notes": "Read back from a recorded capture; nothing in it was fixed before the first request.",
    }
    try:
        return Spec.model_validate_json(canonical_json(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ImportFileError(
            f"server_info: {'.'.join(map(str, first['loc']))} is {first['input']!r}, which no spec can say "
            f"({first['msg']}); restore the file from the original capture"
        ) from None


def _first_info(infos: ServerInfos) -> Mapping[str, Any]:
    return next(info for info in infos.values() if info is not None)


def _labels(rows: Sequence[Row]) -> list[str]:
    """Arms of the capture: the baseline, fixed depths upwards, adaptive."""
    return sorted(dict.fromkeys(row.arm for row in rows), key=lambda label: (label == ADAPTIVE, label.zfill(9)))


def _models(infos: ServerInfos, logs: Mapping[str, str]) -> Json:
    config = effective_config(_first_info(infos))
    stated = config.get("dtype")
    dtype = stated if stated != "auto" else next(filter(None, map(log_dtype, logs.values())), stated)
    target = {
        "path": config.get("model_path"),
        "revision": config.get("revision"),
        "dtype": dtype,
        "quantization": config.get("quantization"),
        "trust_remote_code": bool(config.get("trust_remote_code")),
    }
    return {"target": target, "draft": _draft(infos)}


def _draft(infos: ServerInfos) -> Json | None:
    configs = [effective_config(info) for info in infos.values() if info is not None]
    config = next((config for config in configs if config.get("speculative_draft_model_path")), None)
    if config is None:
        return None
    return {
        "path": config["speculative_draft_model_path"],
        "revision": config.get("speculative_draft_model_revision"),
        "quantization": config.get("speculative_draft_model_quantization"),
    }


def _server(config: Mapping[str, Any]) -> Json:
    reported = {field: config.get(name) for field, name in _SERVER_FIELDS.items()}
    return {
        **{field: value for field, value in reported.items() if value is not None},
        "context_length": config.get("context_length") or config.get("max_req_input_len"),
        "disable_allreduce_fusion": not config.get("enable_flashinfer_allreduce_fusion", False),
    }


def _arm(label: str, info: Mapping[str, Any] | None) -> Json:
    name = arm_name(label)
    if label == BASELINE:
        return {"kind": "baseline", "name": name}
    launched = info or {}
    if label == ADAPTIVE:
        return {"kind": "adaptive", "name": name, "num_steps": launched.get("speculative_num_steps") or 7}
    topk = launched.get("speculative_eagle_topk") or 1
    tokens = launched.get("speculative_num_draft_tokens") if topk > 1 else None
    return {"kind": "eagle3", "name": name, "num_steps": int(label), "topk": topk, "num_draft_tokens": tokens}


def _workload(rows: Sequence[Row]) -> Json:
    """Greedy is an assumption (declared): a capture does not hold its sampling parameters."""
    asked = max((row.asked_tokens or 0 for row in rows), default=0)
    longest = asked or max((len(row.ids) for row in rows), default=1) or 1
    return {
        "files": ["requests.jsonl.xz"],
        "classes": sorted({row.prompt_class for row in rows}),
        "prompts": len({row.index for row in rows}),
        "min_output_tokens": longest,
        "max_output_tokens": longest,
        "ignore_eos": not any(row.meta is not None and row.meta.finish_reason == "stop" for row in rows),
    }


def _load(rows: Sequence[Row]) -> Json:
    """Levels in ascending order; cells of a capture may differ in waves, so the least of them is stated."""
    levels = sorted({row.concurrency for row in rows})
    sizes = {c: len({row.index for row in rows if row.concurrency == c}) for c in levels}
    return {
        "concurrency": levels,
        "waves": max(1, min(n // c for c, n in sizes.items())),
        "min_requests": min(sizes.values()),
        "warmup_requests": 1,
    }
