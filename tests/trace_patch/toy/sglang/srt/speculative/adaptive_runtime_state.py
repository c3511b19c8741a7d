"""A controller that takes every depth it is told."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Slot:
    ema_accept_len: float = 1.5


@dataclass
class Policy:
    slot: Slot = field(default_factory=Slot)

    def _pad_to_cuda_graph_bs(self, batch_size: int) -> int:
        return batch_size

    def _find_closest_bs(self, target: int) -> int:
        return 8 if target >= 8 else 1

    def _route(self, batch_size: int) -> Slot:
        return self.slot


@dataclass
class Worker:
    speculative_num_steps: int


class AdaptiveController:
    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.params: object = Policy()
        self.decisions: list[int] = []

    def activate_step_by_batch(self, batch_size: int) -> None:
        """Nothing: the toy has one slot in force."""

    def on_verify_complete(self, num_correct_drafts_per_req: list[int], batch_size: int) -> None:
        if self.decisions:
            self._activate(self.decisions.pop(0))

    def _activate(self, speculative_num_steps: int) -> None:
        self.worker.speculative_num_steps = speculative_num_steps
