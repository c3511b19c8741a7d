"""Draft trees of every shape up to eight nodes: masks, depths, links and greedy verification against brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache

import pytest
import torch
from sgl_kernel import Unsupported, build_tree_kernel_efficient_cpu, verify_tree_greedy_cpu
from sgl_kernel.trees import MaskMode

TOPK = 8


def shapes(nodes: int) -> list[tuple[int, ...]]:
    """Every tree of so many nodes, as the parent of each node but the root; parents come before their children."""
    return list(itertools.product(*(range(node) for node in range(1, nodes))))


def encoded(parents: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The shape as SGLang hands it over: (parent_list, selected_index), with a group for each node."""
    selected, children = [], [0] * (len(parents) + 1)
    for parent in parents:
        selected.append(parent * TOPK + children[parent])
        children[parent] += 1
    return [-1, *selected], selected


def built(trees: list[tuple[int, ...]], lengths: list[int], mode: MaskMode) -> dict[str, torch.Tensor]:
    """All outputs of the kernel for a batch of trees of one size."""
    nodes, batch = len(trees[0]) + 1, len(trees)
    groups, selected = zip(*(encoded(tree) for tree in trees), strict=True)
    cells = sum(nodes * (nodes + (length if mode is MaskMode.FULL else 0)) for length in lengths)
    out = {
        "mask": torch.ones(cells, dtype=torch.bool),
        "positions": torch.empty(batch * nodes, dtype=torch.long),
        **{name: torch.full((batch, nodes), -1) for name in ("index", "child", "sibling")},
    }
    build_tree_kernel_efficient_cpu(
        torch.tensor(groups), torch.tensor(selected).view(batch, nodes - 1), torch.tensor(lengths), *out.values(),
        TOPK, nodes - 1, nodes, mode,
    )  # fmt: skip
    return out


@cache
def closure(parents: tuple[int, ...]) -> torch.Tensor:
    """Who descends from whom, by powers of the matrix of parents."""
    nodes = len(parents) + 1
    steps = torch.eye(nodes)
    for node, parent in enumerate(parents, start=1):
        steps[node, parent] = 1
    return torch.matrix_power(steps, nodes) > 0


def linked(parents: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """First child and next sibling of every node, by search."""
    of = [-1, *parents]
    nodes = range(len(of))
    child = [min((n for n in nodes if of[n] == node), default=-1) for node in nodes]
    sibling = [min((n for n in nodes if n > node > 0 and of[n] == of[node]), default=-1) for node in nodes]
    return child, sibling


@pytest.mark.parametrize("nodes", range(2, 9))
def test_masks_positions_and_links_of_every_shape_are_those_of_brute_force(nodes: int) -> None:
    trees = shapes(nodes)
    lengths = [5 + i % 7 for i in range(len(trees))]
    out = built(trees, lengths, MaskMode.TREE_ONLY)
    sees = torch.stack([closure(tree) for tree in trees])
    child, sibling = zip(*(linked(tree) for tree in trees), strict=True)
    assert torch.equal(out["mask"].view_as(sees), sees)
    assert torch.equal(out["positions"].view(-1, nodes), sees.sum(-1) - 1 + torch.tensor(lengths)[:, None])
    assert torch.equal(out["index"].view(-1), torch.arange(len(trees) * nodes))
    assert out["child"].tolist() == list(child)
    assert out["sibling"].tolist() == list(sibling)


def test_a_mask_over_the_whole_sequence_shows_every_node_the_prefix() -> None:
    trees, lengths = shapes(4), [1 + i for i in range(6)]
    out = built(trees, lengths, MaskMode.FULL)
    rows = torch.split(out["mask"], [4 * (4 + length) for length in lengths])
    for tree, length, flat in zip(trees, lengths, rows, strict=True):
        assert torch.equal(flat.view(4, -1), torch.cat((torch.ones(4, length).bool(), closure(tree)), dim=1))


def test_a_draft_without_its_parent_is_linked_to_nothing() -> None:
    out = {name: torch.full((1, 3), -1) for name in ("positions", "index", "child", "sibling")}
    build_tree_kernel_efficient_cpu(
        torch.tensor([[-1, 0, 1]]), torch.tensor([[0, 2 * TOPK]]), torch.tensor([4]), torch.ones(9, dtype=torch.bool),
        *out.values(), TOPK, 2, 3, MaskMode.TREE_ONLY,
    )  # fmt: skip
    assert out["child"].tolist() == [[1, -1, -1]]
    assert out["sibling"].tolist() == [[-1, -1, -1]]


def test_a_packed_mask_is_refused() -> None:
    with pytest.raises(Unsupported, match="tree mask mode 2"):
        build_tree_kernel_efficient_cpu(*[torch.zeros(1)] * 8, TOPK, 1, 2, 2)


def cases(nodes: int) -> Iterator[tuple[tuple[int, ...], list[int], list[int]]]:
    """Every shape with random tokens: (shape, token of each node, target's token after it), siblings distinct."""
    rng = random.Random(nodes)
    for tree in shapes(nodes):
        tokens = [0] * nodes
        for parent in range(nodes):
            family = [node for node, p in enumerate(tree, start=1) if p == parent]
            for node, token in zip(family, rng.sample(range(nodes), len(family)), strict=True):
                tokens[node] = token
        yield tree, tokens, [rng.choice([*tokens, rng.randrange(nodes)]) for _ in tokens]


def accepted(tree: tuple[int, ...], tokens: list[int], target: list[int]) -> list[int]:
    """The nodes whose every step from the root is the target's choice: a chain, when siblings are distinct."""
    right = {0} | {node for node, parent in enumerate(tree, start=1) if tokens[node] == target[parent]}
    sees = closure(tree)
    return [node for node in range(len(tokens)) if right.issuperset(sees[node].nonzero().flatten().tolist())]


@pytest.mark.parametrize("nodes", range(2, 9))
@pytest.mark.parametrize("steps", [2, 7])
def test_greedy_verification_accepts_the_longest_chain_that_the_target_would_have_written(
    nodes: int, steps: int
) -> None:
    trees, tokens, target = zip(*cases(nodes), strict=True)
    batch = len(trees)
    out = built(list(trees), [3] * batch, MaskMode.TREE_ONLY)
    predicts = torch.full((batch * nodes,), -7, dtype=torch.int32)
    index, count = torch.full((batch, steps + 1), -1, dtype=torch.int32), torch.full((batch,), -7, dtype=torch.int32)
    verify_tree_greedy_cpu(
        predicts, index, count, torch.tensor(tokens), out["index"], out["child"], out["sibling"], torch.tensor(target)
    )
    chains = [accepted(*case)[: steps + 1] for case in zip(trees, tokens, target, strict=True)]
    padded = [[b * nodes + node for node in chain] + [-1] * (steps + 1 - len(chain)) for b, chain in enumerate(chains)]
    written = torch.full((batch, nodes), -7)
    for b, chain in enumerate(chains):
        written[b, chain] = torch.tensor(target[b])[chain]
    assert index.tolist() == padded
    assert count.tolist() == [len(chain) - 1 for chain in chains]
    assert predicts.tolist() == written.flatten().tolist()
