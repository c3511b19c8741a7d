"""What the plugin reads from a complete scheduler before the first iteration: its rank and its settings."""

from __future__ import annotations

import hashlib
import json
import pkgutil
import sys
from typing import Any

_MODES = "sglang.srt.model_executor.forward_batch_info.ForwardMode"
_PARALLEL = "sglang.srt.runtime_context.get_parallel"
_RANKS = ("tp_rank", "attn_tp_rank", "attn_cp_rank", "pp_rank", "dp_rank")
_SECRETS = frozenset({"api_key", "admin_api_key"})
# Settings that tell what the numbers of a trace mean; all others are in the digest only.
_SHOWN = (
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_adaptive",
    "disable_overlap_schedule",
    "tp_size",
    "dp_size",
)


def ranks(scheduler: Any) -> dict[str, int | None]:
    """Ranks of this process: on the scheduler up to 0.5.15, in the runtime context from 0.5.21."""
    source = getattr(scheduler, "ps", None)
    if source is None:
        source = pkgutil.resolve_name(_PARALLEL)()
    return {name: getattr(source, name, None) for name in _RANKS}


def writes(scheduler: Any) -> bool:
    """Whether this process writes: the first of the ranks that schedule the same batches."""
    found = ranks(scheduler)
    return not (found["attn_tp_rank"] or found["attn_cp_rank"] or found["pp_rank"])


def server_facts(scheduler: Any) -> dict[str, Any]:
    """The header's part about the server: version, ranks, forward modes, settings and their digest."""
    settings = _settings(scheduler.server_args)
    return {
        "sglang": getattr(sys.modules.get("sglang"), "__version__", None),
        "python": ".".join(map(str, sys.version_info[:3])),
        "ranks": ranks(scheduler),
        "modes": {str(int(mode)): mode.name for mode in pkgutil.resolve_name(_MODES)},
        "server_args_sha256": _digest(settings),
        "server_args": {name: _plain(settings[name]) for name in _SHOWN if name in settings},
    }


def _settings(server_args: Any) -> dict[str, Any]:
    """Every setting as it is in force at the start: attributes up to 0.5.15, resolved by a method from 0.5.21."""
    resolved = getattr(server_args, "resolved_dict", None)
    settings = vars(server_args) if resolved is None else resolved()
    return {name: value for name, value in settings.items() if name not in _SECRETS}


def _digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """JSON values as they are; of anything else only the type, whose text is the same in every launch."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return type(value).__name__
