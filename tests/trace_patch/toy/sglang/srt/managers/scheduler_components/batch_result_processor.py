# mypy: disable-error-code=import-not-found
"""What happens to a result, after waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sglang.srt.managers.schedule_batch import GenerationBatchResult, ScheduleBatch


@dataclass(kw_only=True, slots=True, frozen=True)
class SchedulerBatchResultProcessor:
    on_verify: Callable[[list[int], int], None]

    def process_batch_result_decode(self, batch: ScheduleBatch, result: GenerationBatchResult) -> None:
        _wait(result)
        if result.accept_lens is not None:
            self._resolve_spec_v2_tokens(result, batch)
        emitted = result.accept_lens or [1] * len(batch.reqs)
        for req, tokens in zip(batch.reqs, emitted, strict=True):
            if not (req.finished() or req.is_retracted):
                req.extend(tokens)

    def process_batch_result_prefill(self, batch: ScheduleBatch, result: GenerationBatchResult) -> None:
        _wait(result)
        for req in batch.reqs:
            if req.inflight_middle_chunks > 0:
                req.inflight_middle_chunks -= 1
            else:
                req.extend(1)

    def process_batch_result_idle(self, batch: ScheduleBatch, result: GenerationBatchResult) -> None:
        _wait(result)

    def _resolve_spec_v2_tokens(self, result: GenerationBatchResult, batch: ScheduleBatch) -> None:
        accepted = [length - 1 for length in result.accept_lens or ()]
        result.num_correct_drafts_per_req_cpu = accepted
        self.on_verify(accepted, len(batch.reqs))


def _wait(result: Any) -> None:
    if result.copy_done is not None:
        result.copy_done.synchronize()
