"""Bookkeeping of KV slots against loops over single cells, for random tables and requests."""

from __future__ import annotations

import pytest
import sgl_kernel
import torch

POSITIONS = 40


def table(generator: torch.Generator) -> torch.Tensor:
    """Seven rows of distinct slots in random order."""
    return torch.randperm(7 * POSITIONS, generator=generator).view(7, POSITIONS).int()


@pytest.fixture(params=range(10))
def generator(request: pytest.FixtureRequest) -> torch.Generator:
    return torch.Generator().manual_seed(request.param)


def spans(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows of four requests, and a first and last position of each; some spans are empty."""
    rows = torch.randperm(7, generator=generator)[:4]
    start = torch.randint(0, 20, (4,), generator=generator)
    return rows, start, start + torch.randint(0, 5, (4,), generator=generator)


def cells(rows: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> list[tuple[int, int]]:
    return [(r, p) for r, s, e in zip(*(x.tolist() for x in (rows, start, end)), strict=True) for p in range(s, e)]


def test_new_slots_are_entered_in_the_order_of_the_requests(generator: torch.Generator) -> None:
    rows, start, end = spans(generator)
    entered, expected = table(generator), None
    expected = entered.clone()
    slots = torch.randint(0, 999, (int((end - start).sum()) + 3,), generator=generator)
    for (row, position), slot in zip(cells(rows, start, end), slots.tolist(), strict=False):
        expected[row, position] = slot
    sgl_kernel.assign_req_to_token_pool_cpu(rows, entered, start, end, slots, POSITIONS)
    assert torch.equal(entered, expected)


def test_slots_of_spans_are_collected_and_the_rest_is_left(generator: torch.Generator) -> None:
    rows, start, end = spans(generator)
    known = table(generator)
    wanted = [int(known[cell]) for cell in cells(rows, start, end)]
    out = torch.full((len(wanted) + 2,), -5)
    sgl_kernel.assign_extend_cache_locs_cpu(rows, known, start, end, out, POSITIONS)
    assert out.tolist() == [*wanted, -5, -5]


@pytest.mark.parametrize(("topk", "steps"), [(1, 1), (1, 7), (3, 2), (4, 3)])
def test_drafts_are_written_behind_the_end_and_read_branch_by_branch(
    generator: torch.Generator, topk: int, steps: int
) -> None:
    rows, lengths, _ = spans(generator)
    known = table(generator)
    out = torch.empty(len(rows) * topk * steps, dtype=torch.int64)
    sgl_kernel.assign_draft_cache_locs_contiguous_cpu(rows, known, lengths, out, POSITIONS, topk, steps)
    branches = sgl_kernel.build_draft_decode_metadata_cpu(known, rows, lengths, topk, steps, POSITIONS)
    written = out.view(len(rows), topk, steps)
    for b, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
        assert written[b].flatten().tolist() == known[row, length : length + topk * steps].tolist()
        for branch in range(topk):
            seen = branches[b * topk + branch, : length + steps].tolist()
            assert seen == known[row, :length].tolist() + written[b, branch].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_slots_are_moved_in_every_buffer_at_once(generator: torch.Generator, dtype: torch.dtype) -> None:
    buffers = [torch.randn(12, 3, 2 + i, generator=generator).to(dtype) for i in range(3)]
    expected = [buffer.clone() for buffer in buffers]
    source, target = torch.randperm(12, generator=generator)[:6], torch.randperm(12, generator=generator)[:6]
    for old, new in zip(buffers, expected, strict=True):
        for s, t in zip(source.tolist(), target.tolist(), strict=True):
            new[t] = old[s]
    addresses = torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64)
    strides = torch.tensor([buffer[0].numel() * buffer.element_size() for buffer in buffers])
    sgl_kernel.copy_all_layer_kv_cache_cpu(addresses, strides, target, source)
    assert all(torch.equal(old, new) for old, new in zip(buffers, expected, strict=True))


def test_moving_nothing_moves_nothing() -> None:
    buffer = torch.arange(6.0)
    none = torch.empty(0, dtype=torch.int64)
    sgl_kernel.copy_all_layer_kv_cache_cpu(torch.tensor([buffer.data_ptr()]), torch.tensor([4]), none, none)
    assert buffer.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_bonus_token_is_the_last_accepted_one() -> None:
    tokens, bonus = torch.tensor([[10, 11, 0], [20, 0, 0], [30, 31, 32]]), torch.zeros(3, dtype=torch.int64)
    sgl_kernel.fill_bonus_tokens_cpu(tokens, torch.tensor([2, 1, 3], dtype=torch.int32), bonus, 3)
    assert bonus.tolist() == [11, 20, 32]


def test_slots_of_accepted_tokens_are_packed_to_the_front() -> None:
    accepted = torch.tensor([[0, 2, -1], [3, -1, -1]], dtype=torch.int32)
    packed = torch.full((6,), 0)
    sgl_kernel.fill_accept_out_cache_loc_cpu(accepted, torch.tensor([70, 71, 72, 73]), packed)
    assert packed.tolist() == [70, 72, 73, 0, 0, 0]
