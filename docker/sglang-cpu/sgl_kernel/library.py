"""The operators that SGLang finds under `torch.ops.sgl_kernel` instead of importing them."""

from __future__ import annotations

import torch

from sgl_kernel.attention import decode_attention_cpu, extend_attention_cpu
from sgl_kernel.refusal import murmur_hash32_cpu

__all__ = ["LIBRARY"]

_ATTENTION_TAIL = (
    "float sm_scale, float logit_cap, bool is_cross_attn, int sliding_window, Tensor? encoder_lens, Tensor? sinks"
)
_SCHEMAS = {
    "extend_attention_cpu(Tensor q, Tensor? k, Tensor? v, Tensor(a!) o, Tensor k_buffer, Tensor v_buffer, "
    "float k_scale, float v_scale, Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens, "
    "Tensor extend_seq_lens, Tensor extend_start_loc, int max_len_extend, "
    f"{_ATTENTION_TAIL}, Tensor? tree_mask, bool is_causal) -> ()": extend_attention_cpu,
    "decode_attention_cpu(Tensor q, Tensor(a!) k_buffer, Tensor(b!) v_buffer, float k_scale, float v_scale, "
    "Tensor(c!) o, Tensor? k, Tensor? v, Tensor loc, Tensor attn_logits, Tensor req_to_token, "
    f"Tensor req_pool_indices, Tensor seq_lens, {_ATTENTION_TAIL}) -> ()": decode_attention_cpu,
    "murmur_hash32_cpu(Tensor seed, Tensor positions, Tensor col_indices) -> Tensor": murmur_hash32_cpu,
}

LIBRARY = torch.library.Library("sgl_kernel", "FRAGMENT")
"""Keeps the operators registered for as long as the module lives."""

for _schema, _kernel in _SCHEMAS.items():
    LIBRARY.impl(LIBRARY.define(_schema), _kernel, "CPU")
