"""Attention of queries over a paged KV pool, one request after the other.

Requests are never padded to each other, so the attention of one does not depend on which others share its batch: a
condition for outputs that are identical at every concurrency.
"""

# ruff: noqa: PLR0913 - the lists of arguments are SGLang's
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from sgl_kernel.refusal import refuse

__all__ = ["decode_attention_cpu", "extend_attention_cpu"]


def extend_attention_cpu(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    o: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    extend_seq_lens: Tensor,
    extend_start_loc: Tensor,
    max_len_extend: int,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool,
    sliding_window: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
    tree_mask: Tensor | None,
    is_causal: bool,
) -> None:
    """Write to `o` the attention of the last `extend_seq_lens[i]` tokens of every request i over all of its tokens.

    q, o [tokens, heads, width] are ragged: request i starts at row `extend_start_loc[i]`. Its keys and values, those of
    the new tokens included, are rows `req_to_token[req_pool_indices[i], :seq_lens[i]]` of k_buffer and v_buffer
    [slots, kv heads, width]. `tree_mask`, flat, gives each request a square of new token by new token: whether the row
    sees the column; without it, every token sees itself and all before it.
    """
    _check(q, v_buffer, k_scale, v_scale, logit_cap, is_cross_attn, sliding_window, encoder_lens, sinks)
    if not is_causal:
        refuse("attention that is not causal")
    requests = _lists(req_pool_indices, seq_lens, extend_seq_lens, extend_start_loc)
    masked = 0
    for row, length, new, start in requests:
        square = None
        if tree_mask is not None:
            square = tree_mask.view(-1)[masked : masked + new * new].view(new, new)
            masked += new * new
        if new:
            slots = req_to_token[row, :length].long()
            queries = slice(start, start + new)
            o[queries] = _attend(q[queries], k_buffer[slots], v_buffer[slots], sm_scale, _visible(length, new, square))


def decode_attention_cpu(
    q: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    o: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    loc: Tensor,
    attn_logits: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool,
    sliding_window: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
) -> None:
    """Store k and v of one new token a request at slots `loc`, then write to `o` its attention over all tokens.

    q, o [requests, heads, width]; request i sees `req_to_token[req_pool_indices[i], :seq_lens[i]]`. `attn_logits` is
    scratch space of SGLang's own kernel and stays untouched.
    """
    _check(q, v_buffer, k_scale, v_scale, logit_cap, is_cross_attn, sliding_window, encoder_lens, sinks)
    if k is not None and v is not None:
        k_buffer[loc] = k.view(-1, *k_buffer.shape[1:])
        v_buffer[loc] = v.view(-1, *v_buffer.shape[1:])
    for i, (row, length) in enumerate(_lists(req_pool_indices, seq_lens)):
        slots = req_to_token[row, :length].long()
        o[i : i + 1] = _attend(q[i : i + 1], k_buffer[slots], v_buffer[slots], sm_scale, None)


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float, visible: Tensor | None) -> Tensor:
    """Attention of q [queries, heads, width] over k, v [keys, kv heads, width]; heads share keys in equal groups."""
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale, enable_gqa=True)
    return out.squeeze(0).transpose(0, 1)


def _visible(length: int, new: int, square: Tensor | None) -> Tensor | None:
    """Which of `length` keys each of the last `new` tokens sees [new, length]; None when it sees all."""
    if square is None:
        return None if new == 1 else torch.ones(new, length, dtype=torch.bool).tril_(length - new)
    return torch.cat((torch.ones(new, length - new, dtype=torch.bool), square.bool()), dim=1)


def _check(
    q: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    logit_cap: float,
    is_cross_attn: bool,
    sliding_window: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
) -> None:
    asked = {
        "logit cap": logit_cap != 0,
        "cross attention": is_cross_attn or encoder_lens is not None,
        "sliding window": sliding_window > 0,
        "attention sinks": sinks is not None,
        "scaled KV cache": k_scale != 1 or v_scale != 1,
        "keys and values of different width": q.shape[-1] != v_buffer.shape[-1],
    }
    for feature, wanted in asked.items():
        if wanted:
            refuse(feature)


def _lists(*columns: Tensor) -> list[tuple[int, ...]]:
    """Tensors of the same length as rows of Python integers."""
    return list(zip(*(column.tolist() for column in columns), strict=True))
