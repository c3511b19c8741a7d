"""What a server says about itself: `/server_info` and `/model_info` with the shape of 0.5.15."""

from __future__ import annotations

from typing import Any

from kit.standin.journal import Journal
from kit.standin.scheduler import Scheduler
from kit.standin.settings import Settings
from kit.standin.trace import TraceFile

__all__ = ["VERSION", "model_info", "server_info"]

VERSION = "0.5.15.post1"


def server_info(
    settings: Settings, *, scheduler: Scheduler, journal: Journal, trace: TraceFile | None, ready: bool
) -> dict[str, Any]:
    """Launch values at the top, values in force in `internal_states[0]`."""
    return settings.arguments | {
        "status": "ready" if ready else "starting",
        "max_total_num_tokens": settings.limits.pool_tokens,
        "max_req_input_len": settings.longest_request - 5,
        "internal_states": [_internal_state(settings, scheduler, journal, trace)],
        "version": VERSION,
        "kv_events": None,
    }


def model_info(settings: Settings) -> dict[str, Any]:
    """The model as SGLang describes it."""
    arguments = settings.arguments
    return {
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


def _internal_state(
    settings: Settings, scheduler: Scheduler, journal: Journal, trace: TraceFile | None
) -> dict[str, Any]:
    pool = settings.limits.pool_tokens
    state = settings.arguments | {
        "effective_max_running_requests_per_dp": settings.limits.running_requests,
        "last_gen_throughput": journal.throughput,
        "memory_usage": {"weight": 0.27, "kvcache": round(pool * 2.15e-5, 2), "token_capacity": pool, "graph": 0.18},
        "standin": {"iterations": scheduler.iterations, "late": scheduler.late},
    }
    if settings.speculation is not None:
        state["speculative_num_steps"] = scheduler.engine.depth
        state["speculative_num_draft_tokens"] = scheduler.engine.draft_tokens
        state["max_speculative_num_draft_tokens"] = settings.largest_draft_tokens
    if journal.accept_length is not None:
        state["avg_spec_accept_length"] = journal.accept_length
    if trace is not None:
        state["speckit_trace"] = trace.status()
    return state
