"""Attention over a shuffled KV pool against a plain softmax in double precision, and what is refused by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sgl_kernel
import torch

HEADS, KV_HEADS, WIDTH, SLOTS = 6, 2, 16, 400
SCALE = 1 / math.sqrt(WIDTH)


@dataclass(frozen=True)
class Pool:
    """A KV pool and the table of a few requests whose slots lie anywhere in it."""

    k: torch.Tensor
    v: torch.Tensor
    table: torch.Tensor
    rows: torch.Tensor
    lengths: torch.Tensor


def pool(lengths: list[int], *, seed: int) -> Pool:
    generator = torch.Generator().manual_seed(seed)
    k, v = (torch.randn(SLOTS, KV_HEADS, WIDTH, generator=generator) for _ in range(2))
    table = torch.full((len(lengths) + 3, 64), -1, dtype=torch.int32)
    rows = torch.randperm(len(table), generator=generator)[: len(lengths)]
    slots = torch.randperm(SLOTS, generator=generator).int()
    for row, length, own in zip(rows.tolist(), lengths, torch.split(slots[: sum(lengths)], lengths), strict=True):
        table[row, :length] = own
    return Pool(k, v, table, rows, torch.tensor(lengths))


def softmax_attention(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """One query [heads, width] over keys and values [keys, kv heads, width], written out."""
    out = torch.empty_like(q, dtype=torch.float64)
    for head in range(HEADS):
        shared = head // (HEADS // KV_HEADS)
        scores = keys[:, shared].double() @ q[head].double() * SCALE
        weights = (scores - scores.max()).exp()
        out[head] = (weights / weights.sum()) @ values[:, shared].double()
    return out.float()


def extend(p: Pool, q: torch.Tensor, new: list[int], mask: torch.Tensor | None = None, **changed: Any) -> torch.Tensor:
    starts = [sum(new[:i]) for i in range(len(new))]
    o = torch.full_like(q, math.nan)
    arguments = {
        "q": q, "k": None, "v": None, "o": o, "k_buffer": p.k, "v_buffer": p.v, "k_scale": 1.0, "v_scale": 1.0,
        "req_to_token": p.table, "req_pool_indices": p.rows, "seq_lens": p.lengths,
        "extend_seq_lens": torch.tensor(new), "extend_start_loc": torch.tensor(starts), "max_len_extend": max(new),
        "sm_scale": SCALE, "logit_cap": 0.0, "is_cross_attn": False,
        "sliding_window": 0, "encoder_lens": None, "sinks": None, "tree_mask": mask, "is_causal": True,
    } | changed  # fmt: skip
    torch.ops.sgl_kernel.extend_attention_cpu(*arguments.values())
    return o


def decode(p: Pool, q: torch.Tensor, new: torch.Tensor | None = None, **changed: Any) -> torch.Tensor:
    o = torch.full_like(q, math.nan)
    last = p.table[p.rows, p.lengths - 1].long()
    arguments = {
        "q": q, "k_buffer": p.k, "v_buffer": p.v, "k_scale": 1.0, "v_scale": 1.0, "o": o, "k": new,
        "v": None if new is None else -new, "loc": last, "attn_logits": torch.empty(0), "req_to_token": p.table,
        "req_pool_indices": p.rows, "seq_lens": p.lengths, "sm_scale": SCALE, "logit_cap": 0.0, "is_cross_attn": False,
        "sliding_window": 0, "encoder_lens": None, "sinks": None,
    } | changed  # fmt: skip
    torch.ops.sgl_kernel.decode_attention_cpu(*arguments.values())
    return o


def queries(count: int, *, seed: int) -> torch.Tensor:
    return torch.randn(count, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(8))
def test_each_new_token_sees_itself_and_all_before_it(seed: int) -> None:
    p, new = pool([1, 9, 30, 17], seed=seed), [1, 9, 4, 0]
    q = queries(sum(new), seed=seed)
    out, at = extend(p, q, new), 0
    for row, length, count in zip(p.rows, p.lengths.tolist(), new, strict=True):
        for position in range(length - count, length):
            slots = p.table[row, : position + 1].long()
            torch.testing.assert_close(out[at], softmax_attention(q[at], p.k[slots], p.v[slots]))
            at += 1
    assert at == len(q)


@pytest.mark.parametrize("seed", range(8))
def test_under_a_tree_mask_each_node_sees_the_prefix_and_its_marked_nodes_only(seed: int) -> None:
    nodes, p = 5, pool([8, 5, 21], seed=seed)
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(3, nodes, nodes, generator=generator) < 0.5
    mask[:, range(nodes), range(nodes)] = True
    q = queries(3 * nodes, seed=seed)
    out = extend(p, q, [nodes] * 3, mask.flatten()).view(3, nodes, HEADS, WIDTH)
    for b, (row, length) in enumerate(zip(p.rows, p.lengths.tolist(), strict=True)):
        for node in range(nodes):
            tree = p.table[row, length - nodes : length][mask[b, node]]
            slots = torch.cat((p.table[row, : length - nodes], tree)).long()
            torch.testing.assert_close(out[b, node], softmax_attention(q[b * nodes + node], p.k[slots], p.v[slots]))


@pytest.mark.parametrize("seed", range(8))
def test_a_decoded_token_is_stored_first_and_sees_itself(seed: int) -> None:
    p, q, new = pool([1, 7, 40], seed=seed), queries(3, seed=seed), torch.randn(3, KV_HEADS * WIDTH)
    out = decode(p, q, new)
    for b, (row, length) in enumerate(zip(p.rows, p.lengths.tolist(), strict=True)):
        slots = p.table[row, :length].long()
        assert torch.equal(p.k[slots[-1]].flatten(), new[b])
        assert torch.equal(p.v[slots[-1]].flatten(), -new[b])
        torch.testing.assert_close(out[b], softmax_attention(q[b], p.k[slots], p.v[slots]))


def test_decoding_without_new_keys_leaves_the_pool_alone() -> None:
    p = pool([4, 2], seed=0)
    before = p.k.clone(), p.v.clone()
    decode(p, queries(2, seed=0))
    assert torch.equal(p.k, before[0])
    assert torch.equal(p.v, before[1])


def test_a_request_gets_the_same_bits_alone_and_in_company() -> None:
    p, q = pool([30, 3, 17, 40], seed=1), queries(4, seed=1)
    together = decode(p, q)
    for b in range(4):
        alone = replace(p, rows=p.rows[b : b + 1], lengths=p.lengths[b : b + 1])
        assert torch.equal(decode(alone, q[b : b + 1])[0], together[b])


REFUSED = {
    "logit cap": {"logit_cap": 30.0},
    "cross attention": {"is_cross_attn": True},
    "sliding window": {"sliding_window": 128},
    "attention sinks": {"sinks": torch.zeros(HEADS)},
    "scaled KV cache": {"v_scale": 0.5},
    "keys and values of different width": {"v_buffer": torch.zeros(SLOTS, KV_HEADS, WIDTH // 2)},
}


@pytest.mark.parametrize("feature", REFUSED)
def test_what_is_not_supported_is_refused_by_name(feature: str) -> None:
    p = pool([2], seed=0)
    with pytest.raises(sgl_kernel.Unsupported, match=feature):
        extend(p, queries(1, seed=0), [1], **REFUSED[feature])
    with pytest.raises(sgl_kernel.Unsupported, match=feature):
        decode(p, queries(1, seed=0), **REFUSED[feature])


def test_encoders_seeded_sampling_and_multi_layer_drafts_are_refused_by_name() -> None:
    with pytest.raises(sgl_kernel.Unsupported, match="not causal"):
        extend(pool([2], seed=0), queries(1, seed=0), [1], is_causal=False)
    with pytest.raises(sgl_kernel.Unsupported, match="seeded sampling"):
        torch.ops.sgl_kernel.murmur_hash32_cpu.default(*[torch.zeros(1, dtype=torch.int64)] * 3)
    with pytest.raises(sgl_kernel.Unsupported, match="multi-layer EAGLE"):
        sgl_kernel.rotate_input_ids_cpu(torch.zeros(1), torch.zeros(1), torch.zeros(1), torch.zeros(1), None)
