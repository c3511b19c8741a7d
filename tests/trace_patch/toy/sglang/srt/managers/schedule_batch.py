# mypy: disable-error-code=import-not-found
"""Requests and batches."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace

from sglang.srt.model_executor.forward_batch_info import ForwardMode


class Req:
    def __init__(self, rid: str, prompt_tokens: int = 5, max_new_tokens: int = 4) -> None:
        self.rid = rid
        self.prompt_tokens = prompt_tokens
        self.max_new_tokens = max_new_tokens
        self.output_ids: array[int] = array("q")
        self.finished_reason: object | None = None
        self.is_retracted = False
        self.inflight_middle_chunks = 0

    def finished(self) -> bool:
        return self.finished_reason is not None

    def extend(self, tokens: int) -> None:
        self.output_ids.extend([7] * tokens)
        if len(self.output_ids) >= self.max_new_tokens:
            self.finished_reason = "length"


@dataclass
class ScheduleBatch:
    reqs: list[Req]
    forward_mode: ForwardMode
    forward_iter: int = 0
    extend_lens: list[int] | None = None
    prefix_lens: list[int] | None = None
    decoding_reqs: list[Req] | None = None

    def copy(self) -> ScheduleBatch:
        return replace(self, reqs=self.reqs[:])


@dataclass
class GenerationBatchResult:
    copy_done: object | None = None
    next_token_ids: list[int] = field(default_factory=list)
    accept_lens: list[int] | None = None
    num_correct_drafts_per_req_cpu: list[int] | None = None
    can_run_cuda_graph: bool = False
    speculative_num_draft_tokens: int | None = None
