"""Draft trees: from the drafts that were selected to masks and links, and from the target's tokens to what is accepted.

A tree has `draft_token_num` nodes; node 0 is the last accepted token and node i > 0 the i-th selected draft. Links are
stored as first child and next sibling; children are in ascending order.
"""

# ruff: noqa: PLR0913 - the lists of arguments are SGLang's
from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from sgl_kernel.refusal import refuse

__all__ = ["MaskMode", "build_tree_kernel_efficient_cpu", "verify_tree_greedy_cpu"]

_NONE = -1


class MaskMode(IntEnum):
    """How a tree mask is laid out; the numbers are SGLang's."""

    FULL = 0
    """For each node a row over the whole sequence, then the tree."""
    TREE_ONLY = 1
    """For each node a row over the tree."""


def build_tree_kernel_efficient_cpu(
    parent_list: Tensor,
    selected_index: Tensor,
    verified_seq_len: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Fill mask, positions and links of one tree a request.

    `selected_index` [requests, nodes - 1] numbers each node among all drafts: draft s is one of the topk children of
    group s // topk, group 0 hangs from the root, and group g > 0 from the draft numbered `parent_list`[request, g].
    `tree_mask` (flat, bool) comes filled with true. `retrive_next_*` [requests, nodes] come filled with -1.
    """
    modes = {mode.value for mode in MaskMode}
    if int(tree_mask_mode) not in modes:
        refuse(f"tree mask mode {int(tree_mask_mode)}")
    nodes, offset = draft_token_num, 0
    retrive_index.view(-1)[:] = torch.arange(len(verified_seq_len) * nodes)
    for b, length in enumerate(verified_seq_len.tolist()):
        parents = _parents(parent_list[b].tolist(), selected_index[b].tolist(), topk)
        sees = _ancestry(parents)
        before = length if tree_mask_mode == MaskMode.FULL else 0
        square = tree_mask.view(-1)[offset : offset + nodes * (before + nodes)].view(nodes, before + nodes)
        square[:, before:] = sees
        offset += square.numel()
        positions.view(-1, nodes)[b] = length + _depths(parents)
        for table, links in zip((retrive_next_token, retrive_next_sibling), _links(parents), strict=True):
            table.view(-1, nodes)[b] = torch.tensor(links)


def verify_tree_greedy_cpu(
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
) -> None:
    """Walk from the root to the child that the target would have written, for as long as there is one.

    `candidates` and `target_predict` [requests, nodes] are the token in each node and the target's next token there.
    Visited nodes go to `accept_index` [requests, steps + 1] by their number in the batch, the target's tokens there to
    `predicts` [requests * nodes], and the number of drafts among them to `accept_token_num` [requests].
    """
    target = target_predict.view(-1).tolist()
    tables = (candidates, retrive_index, retrive_next_token, retrive_next_sibling)
    for b, (tokens, index, child, sibling) in enumerate(zip(*(t.tolist() for t in tables), strict=True)):
        node, path = 0, [index[0]]
        while len(path) < accept_index.shape[1]:
            node = child[node]
            while node != _NONE and tokens[node] != target[path[-1]]:
                node = sibling[node]
            if node == _NONE:
                break
            path.append(index[node])
        accept_index[b, : len(path)] = torch.tensor(path)
        predicts[path] = torch.tensor([target[i] for i in path], dtype=predicts.dtype)
        accept_token_num[b] = len(path) - 1


def _parents(group_parents: list[int], selected: list[int], topk: int) -> list[int]:
    """Parent of every node. A draft whose own parent was not selected has none, and is never reached."""
    node_of: dict[int, int] = {}
    for node, draft in enumerate(selected, start=1):
        node_of.setdefault(draft, node)
    groups = [draft // topk for draft in selected]
    return [_NONE, *(0 if group == 0 else node_of.get(group_parents[group], _NONE) for group in groups)]


def _path(parents: list[int], node: int) -> list[int]:
    """`node` and its ancestors below the root, upwards."""
    path = []
    while node > 0:
        path.append(node)
        node = parents[node]
    return path


def _ancestry(parents: list[int]) -> Tensor:
    """Whether the row is the column or descends from it [nodes, nodes]; all descend from the root."""
    sees = torch.zeros(len(parents), len(parents), dtype=torch.bool)
    sees[:, 0] = True
    for node in range(1, len(parents)):
        sees[node, _path(parents, node)] = True
    return sees


def _depths(parents: list[int]) -> Tensor:
    return torch.tensor([len(_path(parents, node)) for node in range(len(parents))])


def _links(parents: list[int]) -> tuple[list[int], list[int]]:
    """First child and next sibling of every node."""
    child, sibling = [_NONE] * len(parents), [_NONE] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        if parents[node] != _NONE:
            child[parents[node]], sibling[node] = node, child[parents[node]]
    return child, sibling
