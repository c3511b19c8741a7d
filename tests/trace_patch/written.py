"""Recorders fed by hand, without hooks: what a hook would see of a scheduler, a batch and a result."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speckit_trace import layout
from speckit_trace.recorder import Recorder
from speckit_trace.stream import SEGMENT_BYTES

__all__ = ["DECODE", "EXTEND", "Batch", "Recorder", "Req", "Result", "decode", "layout", "prefill", "recorder"]

EXTEND, DECODE = 1, 2


@dataclass(eq=False)
class Req:
    """A request."""

    rid: str
    tokens: int = 1
    finished_reason: str | None = None
    is_retracted: bool = False
    inflight_middle_chunks: int = 0
    output_ids: array[int] = field(init=False)

    def __post_init__(self) -> None:
        self.output_ids = array("q", bytes(8 * self.tokens))


@dataclass
class Batch:
    """A batch."""

    reqs: list[Req]
    forward_iter: int
    forward_mode: int = DECODE
    extend_lens: list[int] | None = None
    prefix_lens: list[int] | None = None
    decoding_reqs: list[Req] | None = None


@dataclass
class Result:
    """A result that is there at once."""

    num_correct_drafts_per_req_cpu: list[int] | None = None
    speculative_num_draft_tokens: int | None = None
    can_run_cuda_graph: bool = False
    copy_done: Any = None
    next_token_ids: list[int] = field(default_factory=list)


def recorder(directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> Recorder:
    """A recorder that has written its start."""
    directory.mkdir(exist_ok=True)
    facts: dict[str, Any] = {
        "version": "0",
        "sha": "",
        "sglang": "0.5.21",
        "reviewed_as": None,
        "override": True,
        "targets": {},
        "ranks": {"tp_rank": 0},
        "modes": {str(EXTEND): "EXTEND", str(DECODE): "DECODE"},
        "server_args": {},
        "server_args_sha256": "",
    }
    made = Recorder(directory, facts, segment_bytes=segment_bytes)
    made.event("start", iteration=0)
    return made


def decode(writer: Recorder, number: int, reqs: list[Req], accepted: Sequence[int] | None = None) -> None:
    """Record one decode iteration."""
    drafts = None if accepted is None else max([1, *(count + 1 for count in accepted)])
    batch = Batch(reqs, number)
    result = Result(None if accepted is None else list(accepted), drafts)
    writer.ready(batch, result)
    writer.decoded(batch, result)


def prefill(writer: Recorder, number: int, reqs: list[Req], new: Sequence[int], cached: Sequence[int]) -> None:
    """Record one prefill iteration."""
    writer.processed(Batch(reqs, number, EXTEND, list(new), list(cached)), Result())
