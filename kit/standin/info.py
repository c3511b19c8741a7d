"""What a server says about itself: `/server_info` and `/model_info` with the shape of their version."""

from __future__ import annotations

import sys
from typing import Any

from kit.standin.journal import Journal
from kit.standin.scheduler import Scheduler
from kit.standin.settings import Settings
from kit.standin.trace import TraceFile

__all__ = ["loads", "model_info", "server_info"]

# What later versions add to `/server_info` beside their arguments, and to `/model_info`.
_PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
_STARTUP_TIME = {
    "load_weight": 0.5,
    "kv_cache_allocation": 0.6,
    "scheduler_e2e": 6.5,
    "cuda_graph": dict.fromkeys(_PHASES, 0.1),
    "tokenizer_e2e": 9.5,
}
_NO_EMBEDDING: dict[str, Any] = {
    **dict.fromkeys(("family", "task", "execution", "attention", "postprocessor"), "none"),
    "pooling": "model_defined",
    "tokenizer_special_tokens": "model_default",
    "bcg_eligibility": "disabled",
    **dict.fromkeys(("normalize", "supports_dimensions", "supports_token_embeddings", "supports_multimodal"), False),
    **dict.fromkeys(("requires_embedding_flag", "auto_enable_embedding", "enabled"), False),
    **dict.fromkeys(("safe_disable_kv_cache", "safe_disable_radix_cache", "safe_disable_chunked_prefill"), False),
    "matryoshka_dimensions": [],
}


def server_info(
    settings: Settings, *, scheduler: Scheduler, journal: Journal, trace: TraceFile | None, ready: bool
) -> dict[str, Any]:
    """Launch values at the top, values in force in `internal_states[0]`."""
    info = settings.arguments | {
        "status": "ready" if ready else "starting",
        "max_total_num_tokens": settings.limits.pool_tokens,
        "max_req_input_len": settings.longest_request - 5,
        "internal_states": [_internal_state(settings, scheduler, journal, trace)],
        "version": settings.dialect.version,
        "kv_events": None,
    }
    if settings.dialect.newer:
        info |= {"frontend": "python", "launch_command": " ".join(sys.argv[1:]), "startup_time": _STARTUP_TIME}
    return info


def model_info(settings: Settings) -> dict[str, Any]:
    """The model as SGLang describes it."""
    arguments = settings.arguments
    info = {
        "model_path": arguments["model_path"],
        "tokenizer_path": arguments["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
    }
    if settings.dialect.newer:
        shown = ("served_model_name", "load_format", "reasoning_parser", "disaggregation_mode")
        info |= {name: arguments[name] for name in shown}
        info |= {"tool_call_parser": arguments["tool_call_parser"], "embedding": _NO_EMBEDDING}
    return info


def loads(settings: Settings, scheduler: Scheduler, journal: Journal) -> dict[str, Any]:
    """One entry of `/v1/loads`."""
    engine, pool = scheduler.engine, settings.limits.pool_tokens
    memory = {"weight_gb": 0.27, "kv_cache_gb": round(pool * 2.15e-5, 2), "graph_gb": 0.18, "token_capacity": pool}
    load: dict[str, Any] = {
        "dp_rank": 0,
        "num_running_reqs": engine.running,
        "num_waiting_reqs": engine.waiting,
        "num_waiting_uncached_tokens": 0,
        "num_used_tokens": engine.used_tokens,
        "num_total_tokens": engine.used_tokens,
        "max_total_num_tokens": pool,
        "max_running_requests": settings.limits.running_requests,
        "token_usage": engine.used_tokens / pool,
        "gen_throughput": journal.throughput,
        "cache_hit_rate": 0.0,
        "utilization": 0.0,
        "memory": memory,
        "queues": {"waiting": engine.waiting, "grammar": 0, "paused": 0, "retracted": 0},
    }
    if settings.speculation is not None:
        length = journal.accept_length or 0.0
        load["speculative"] = {"accept_length": length, "accept_rate": 0.0}
    return load


def _internal_state(
    settings: Settings, scheduler: Scheduler, journal: Journal, trace: TraceFile | None
) -> dict[str, Any]:
    state = settings.arguments | {
        "effective_max_running_requests_per_dp": settings.limits.running_requests,
        "last_gen_throughput": journal.throughput,
        "memory_usage": _memory(settings),
        "standin": {"iterations": scheduler.iterations, "late": scheduler.late},
    }
    if settings.dialect.newer:
        graphs = settings.arguments["cuda_graph_config"]["decode"]["bs"]
        state |= {"world_size": 1, "decode_cuda_graph_bs": graphs, "decode_cuda_graph_memory_gb": 0.18}
        del state["custom_sigquit_handler"]
    else:
        state["max_speculative_num_draft_tokens"] = settings.largest_draft_tokens or None
    if settings.speculation is not None:
        state["speculative_num_steps"] = scheduler.engine.depth
        state["speculative_num_draft_tokens"] = scheduler.engine.draft_tokens
    if journal.accept_length is not None:
        state["avg_spec_accept_length"] = journal.accept_length
    if trace is not None:
        state["speckit_trace"] = trace.status()
    return state


def _memory(settings: Settings) -> dict[str, Any]:
    pool = settings.limits.pool_tokens
    memory = {"weight": 0.27, "kvcache": round(pool * 2.15e-5, 2), "token_capacity": pool}
    if settings.dialect.newer:
        graph = dict.fromkeys(_PHASES, 0.03)
        return memory | {"startup_available": 68.64, "token_capacity_swa": None, "graph": graph}
    return memory | {"graph": 0.18}
