"""The rarer things to be read from SGLang's objects, one function each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speckit_trace import layout

_REASON_LIMIT = 300  # characters; a stop must fit into the reserve of a segment


def wait_for(result: Any) -> None:
    """Wait for a result as SGLang does: for its copy or, without overlap and speculation, by reading its tokens."""
    copied = result.copy_done
    if copied is not None:
        copied.synchronize()
    elif hasattr(tokens := getattr(result, "next_token_ids", None), "tolist"):
        tokens.tolist()  # type: ignore[union-attr]


def state_of(req: Any) -> int:
    """Why SGLang will discard the row, if it will."""
    finished = layout.FINISHED if req.finished_reason is not None else 0
    return finished | layout.RETRACTED if req.is_retracted else finished


def prefilled(reqs: Sequence[Any], decoding: Sequence[Any] | None) -> tuple[list[int], bytes | None]:
    """Output tokens of the rows of a batch that prefills, and what is special about them, if anything is."""
    plain = [
        len(r.output_ids)
        for r in reqs
        if r.finished_reason is None and not r.is_retracted and r.inflight_middle_chunks <= 0
    ]
    if not decoding and len(plain) == len(reqs):
        return plain, None
    flags = bytes([state_of(r) | part_of(r, decoding or ()) for r in reqs])
    return [len(r.output_ids) for r in reqs], flags


def part_of(req: Any, decoding: Sequence[Any]) -> int:
    """What a row does in a batch that prefills: decodes along, or has a part of its prompt still to come."""
    if req in decoding:
        return layout.DECODING
    return layout.CHUNK if req.inflight_middle_chunks > 0 else 0


def slot_of(controller: Any, batch_size: int) -> tuple[int, float]:
    """Batch-size slot of SGLang's own policy and its moving average; another policy has neither."""
    policy = controller.params
    try:
        padded = policy._pad_to_cuda_graph_bs(batch_size)
        return policy._find_closest_bs(padded), policy._route(batch_size).ema_accept_len
    except (AttributeError, TypeError, LookupError):
        return layout.NO_SLOT, float("nan")


def reason_of(error: Exception) -> str:
    """One short line of plain text."""
    text = f"{type(error).__name__}: {error}"
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:_REASON_LIMIT]
