# mypy: disable-error-code=import-not-found
"""A scheduler that decodes toy requests, with or without overlap, until none is left."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sglang.srt.managers.schedule_batch import GenerationBatchResult, Req, ScheduleBatch
from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.speculative.adaptive_runtime_state import AdaptiveController, Worker


@dataclass
class InternalState:
    internal_state: dict[str, Any] = field(default_factory=dict)


class Event:
    """Happens when somebody waits for it."""

    def __init__(self) -> None:
        self.waited = 0

    def synchronize(self) -> None:
        self.waited += 1


class Scheduler:
    """`depth` None decodes without speculation; every row accepts as many drafts as its turn says, up to the depth."""

    def __init__(self, *, overlap: bool = True, depth: int | None = None, tp_rank: int = 0) -> None:
        self.ps = SimpleNamespace(tp_rank=tp_rank, attn_tp_rank=tp_rank, attn_cp_rank=0, pp_rank=0, dp_rank=None)
        self.server_args = SimpleNamespace(speculative_num_steps=depth, tp_size=1, api_key="secret", path=object())
        self.overlap = overlap
        self.draft_worker = None if depth is None else Worker(depth)
        self.controller = None if self.draft_worker is None else AdaptiveController(self.draft_worker)
        self.batch_result_processor = SchedulerBatchResultProcessor(on_verify=self._verified)
        self.running_batch = ScheduleBatch([], ForwardMode.DECODE)
        self.waiting_queue: list[Req] = []
        self.result_queue: deque[tuple[ScheduleBatch, GenerationBatchResult]] = deque()
        self.last_batch: ScheduleBatch | None = None
        self.forward_ct = 0
        self.gracefully_exit = False
        self.turn = 0

    # ---------------------------------------------------------------- what the plugin hooks

    def get_init_info(self) -> dict[str, Any]:
        return {"status": "ready"}

    def run_event_loop(self) -> None:
        self.gracefully_exit = False
        (self.event_loop_overlap if self.overlap else self.event_loop_normal)()

    def run_batch(self, batch: ScheduleBatch, pp_proxy_tensors: Any = None) -> GenerationBatchResult:
        self.forward_ct += 1
        batch.forward_iter = self.forward_ct
        copied = Event() if self.overlap or self.draft_worker is not None else None
        result = GenerationBatchResult(copy_done=copied, next_token_ids=[7] * len(batch.reqs), can_run_cuda_graph=True)
        if self.draft_worker is not None and batch.forward_mode is ForwardMode.DECODE:
            depth = self.draft_worker.speculative_num_steps
            result.speculative_num_draft_tokens = depth + 1
            result.accept_lens = [1 + (self.turn + row) % (depth + 1) for row in range(len(batch.reqs))]
            self.turn += 1
        return result

    def on_idle(self) -> None:
        """Nothing to do."""

    def flush_cache(self, empty_cache: bool = True) -> bool:
        return self.is_fully_idle()

    def get_internal_state(self, recv_req: object) -> InternalState:
        return InternalState()

    # ---------------------------------------------------------------- what it relies on

    def is_fully_idle(self, for_health_check: bool = False) -> bool:
        return not (self.running_batch.reqs or self.waiting_queue or self.result_queue)

    def event_loop_normal(self) -> None:
        while not self.gracefully_exit:
            batch = self._next_batch()
            if batch is None:
                self.on_idle()
                self.gracefully_exit = True
            else:
                self.process_batch_result(batch, self.run_batch(batch))
                self._settle(batch)

    def event_loop_overlap(self) -> None:
        while not self.gracefully_exit:
            batch = self._next_batch()
            if batch is not None:
                result = self.run_batch(batch)
                self.result_queue.append((batch.copy(), result))
                self._settle(batch)
            if self.last_batch is not None:
                self.process_batch_result(*self.result_queue.popleft())
            elif batch is None:
                self.on_idle()
                self.gracefully_exit = True
            self.last_batch = batch

    def process_batch_result(self, batch: ScheduleBatch, result: GenerationBatchResult) -> None:
        processor = self.batch_result_processor
        if batch.forward_mode is ForwardMode.DECODE:
            processor.process_batch_result_decode(batch, result)
        elif batch.forward_mode is ForwardMode.IDLE:
            processor.process_batch_result_idle(batch, result)
        else:
            processor.process_batch_result_prefill(batch, result)

    # ---------------------------------------------------------------- the toy

    def _next_batch(self) -> ScheduleBatch | None:
        """All waiting requests in one prefill; otherwise every running one that is not known to have finished."""
        if self.waiting_queue:
            reqs, self.waiting_queue = self.waiting_queue, []
            new = [req.prompt_tokens for req in reqs]
            return ScheduleBatch(reqs, ForwardMode.EXTEND, extend_lens=new, prefix_lens=[0] * len(reqs))
        self.running_batch.reqs = [req for req in self.running_batch.reqs if not req.finished()]
        return ScheduleBatch(self.running_batch.reqs, ForwardMode.DECODE) if self.running_batch.reqs else None

    def _settle(self, batch: ScheduleBatch) -> None:
        if batch.forward_mode is ForwardMode.EXTEND:
            self.running_batch.reqs = self.running_batch.reqs + batch.reqs

    def _verified(self, accepted: list[int], batch_size: int) -> None:
        if self.controller is not None:
            self.controller.on_verify_complete(accepted, batch_size)
