"""Bookkeeping of KV slots: which row of the KV pool holds which token of which request.

`req_to_token` [rows, positions] is the table. Every function writes into a tensor that SGLang hands in.
"""

# ruff: noqa: PLR0913 - the lists of arguments are SGLang's
from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
]


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start: Tensor, end: Tensor, out_cache_loc: Tensor, pool_len: int
) -> None:
    """Enter the slots `out_cache_loc`, one request after the other, at positions start[i] to end[i] of its row."""
    rows, positions = _cells(req_pool_indices, start, end)
    req_to_token[rows, positions] = out_cache_loc[: len(rows)].to(req_to_token.dtype)


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start: Tensor, end: Tensor, out_cache_loc: Tensor, pool_len: int
) -> None:
    """The opposite direction: collect into `out_cache_loc` the slots at positions start[i] to end[i] of each row."""
    rows, positions = _cells(req_pool_indices, start, end)
    out_cache_loc[: len(rows)] = req_to_token[rows, positions].to(out_cache_loc.dtype)


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    seq_lens: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
    topk: int,
    num_steps: int,
) -> None:
    """Collect the `topk * num_steps` slots behind the end of every request, which its drafts are written to."""
    assign_extend_cache_locs_cpu(
        req_pool_indices, req_to_token, seq_lens, seq_lens + topk * num_steps, out_cache_loc, pool_len
    )


def build_draft_decode_metadata_cpu(
    req_to_token: Tensor, req_pool_indices: Tensor, seq_lens: Tensor, topk: int, num_steps: int, pool_len: int
) -> Tensor:
    """A table with one row for every branch of every request: its own tokens, then the drafts of that branch alone.

    Branch t of a request drafts into slots [t * num_steps, (t + 1) * num_steps) behind the request's end.
    """
    table = req_to_token[req_pool_indices.long()].repeat_interleave(topk, dim=0)
    own = seq_lens.long().repeat_interleave(topk)[:, None] + torch.arange(num_steps)
    branch = torch.arange(topk).repeat(len(seq_lens))[:, None]
    rows = req_pool_indices.long().repeat_interleave(topk)[:, None]
    return table.scatter_(1, own, req_to_token[rows, own + branch * num_steps])


def copy_all_layer_kv_cache_cpu(data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor) -> None:
    """Copy slot src_loc[i] to tgt_loc[i] in every buffer, all at once: sources may be targets of others.

    Buffer b begins at address data_ptrs[b] and has slots of strides[b] bytes.
    """
    targets, sources = tgt_loc.long().numpy(), src_loc.long().numpy()
    if not len(targets):
        return
    slots = int(max(targets.max(), sources.max())) + 1
    for address, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        memory = (ctypes.c_uint8 * (slots * stride)).from_address(address)
        buffer = np.frombuffer(memory, dtype=np.uint8).reshape(slots, stride)
        buffer[targets] = buffer[sources]


def fill_bonus_tokens_cpu(accept_tokens: Tensor, accept_lens: Tensor, bonus_tokens: Tensor, accept_stride: int) -> None:
    """The last accepted token of every request; `accept_tokens` has `accept_stride` places for each."""
    last = torch.arange(len(accept_lens)) * accept_stride + accept_lens.long() - 1
    bonus_tokens[: len(accept_lens)] = accept_tokens.view(-1)[last].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc_cpu(accept_index: Tensor, out_cache_loc: Tensor, accept_out_cache_loc: Tensor) -> None:
    """The slots of all accepted tokens, packed to the front; -1 in `accept_index` is an empty place."""
    flat = accept_index.view(-1)
    accepted = out_cache_loc[flat[flat >= 0].long()]
    accept_out_cache_loc[: len(accepted)] = accepted.to(accept_out_cache_loc.dtype)


def _cells(req_pool_indices: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Row and position of every cell from start[i] to end[i] of each request's row; none where end <= start."""
    counts = (end.long() - start.long()).clamp(min=0)
    rows = req_pool_indices.long().repeat_interleave(counts)
    first = (start.long() - counts.cumsum(0) + counts).repeat_interleave(counts)
    return rows, first + torch.arange(len(rows))
