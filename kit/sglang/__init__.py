"""Between our words and SGLang's: launch flags and request payloads out, `meta_info` and `/server_info` in.

The only package (with the stand-in and the contracts) where SGLang's own `spec_*` keys appear.
"""

from kit.sglang.answer import (
    COUNT_IDENTITIES,
    ContractViolation,
    DraftCounts,
    Meta,
    TokenChoice,
    added_counts,
    broken_counts,
    draft_counts,
    preference,
    read_meta,
    token_choice,
)
from kit.sglang.launch import adaptive_config_text, generate_payload, launch_flags, outputs_payload, prefill_payload
from kit.sglang.log import DecodeLine, admission_limit, decode_lines, eager_from, retracted_in
from kit.sglang.places import without_places
from kit.sglang.server import effective_config, identity_problem, leftover_problem, named_models, redact
from kit.sglang.trace import TRACE_BLOCK, TracePlugin, trace_plugin, trace_problem

__all__ = [
    "COUNT_IDENTITIES",
    "TRACE_BLOCK",
    "ContractViolation",
    "DecodeLine",
    "DraftCounts",
    "Meta",
    "TokenChoice",
    "TracePlugin",
    "adaptive_config_text",
    "added_counts",
    "admission_limit",
    "broken_counts",
    "decode_lines",
    "draft_counts",
    "eager_from",
    "effective_config",
    "generate_payload",
    "identity_problem",
    "launch_flags",
    "leftover_problem",
    "named_models",
    "outputs_payload",
    "preference",
    "prefill_payload",
    "read_meta",
    "redact",
    "retracted_in",
    "token_choice",
    "trace_plugin",
    "trace_problem",
    "without_places",
]
