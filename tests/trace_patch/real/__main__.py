# mypy: disable-error-code="import-not-found,attr-defined,misc"
"""SGLang's own event loop, batch launch, result processing and adaptive controller serve made-up requests.

    python tests/trace_patch/real FOLDER SCENARIO

runs in an environment that holds an SGLang wheel, this plugin and nothing else, records into FOLDER, and
prints SGLang's own account of what was served, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from modules import Anything, Loose, prepare


class Tokens(list[int]):
    """A tensor that has arrived on the CPU."""

    is_cpu = True

    def tolist(self) -> list[int]:
        return list(self)


class Copied:
    """An event on a device that finished in time."""

    def synchronize(self) -> None: ...


class Request(Loose):
    """A request that ends after so many tokens, with SGLang's own counters of verify rounds."""

    def __init__(self, rid: str, tokens: int) -> None:
        super().__init__(
            rid=rid,
            most=tokens,
            output_ids=array("q"),
            finished_reason=None,
            is_retracted=False,
            inflight_middle_chunks=0,
            grammar=None,
            beam_group=None,
            discard_output_reason=None,
            spec_verify_ct=0,
            spec_num_correct_drafts=0,
            kv_committed_len=0,
        )

    def finished(self) -> bool:
        return self.finished_reason is not None

    def update_finish_state(self, new_accepted_len: int = 1) -> None:
        if len(self.output_ids) >= self.most:
            self.finished_reason = "length"


class Worker(Loose):
    """A worker whose drafts are accepted by a fixed pattern; as a draft worker it can change its depth."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        super().__init__(speculative_num_steps=scenario["depth"], launched=[], turn=0, controller=None)
        self.scenario = scenario

    def forward_batch_generation(self, batch: Any, *args: Any, **kwargs: Any) -> Loose:
        rows = len(batch.reqs)
        drafting = self.scenario["depth"] is not None and batch.forward_mode.is_decode()
        if drafting and self.controller is not None:
            self.controller.activate_step_by_batch(rows)
        depth = self.speculative_num_steps if drafting else None
        self.launched.append([batch.forward_iter, batch.forward_mode.name, depth, [r.rid for r in batch.reqs]])
        overlap = self.scenario["overlap"]
        result = Loose(
            copy_done=None,
            next_token_ids=Tokens([7] * rows),
            accept_lens=None,
            num_correct_drafts_per_req_cpu=None,
            speculative_num_draft_tokens=None,
            can_run_cuda_graph=drafting or not overlap,
            num_non_draft_tokens_per_req=1,
            block_accept_lens=None,
            cap_lens=None,
            delay_sample_func=None,
            routed_experts_output=None,
            indexer_topk_output=None,
            auxiliary_host_output=None,
            grammar_advanced=True,
        )
        if depth is not None:
            width = self.scenario["draft_tokens"] or depth + 1
            self.turn += 1
            result.accept_lens = Tokens(1 + (self.turn + row) % (depth + 1) for row in range(rows))
            result.speculative_num_draft_tokens = result.speculative_output_stride = width
            result.next_token_ids = Tokens([7] * (rows * width))
        return result

    def apply_runtime_state(self, state: Any) -> None:
        self.speculative_num_steps = state.speculative_num_steps

    def build_adaptive_runtime_state(self, **wanted: Any) -> Loose:
        return Loose(speculative_num_steps=wanted["speculative_num_steps"])

    def on_verify_complete_cpu(self, accepted: Sequence[int], batch_size: int) -> None:
        if self.controller is not None:
            self.controller.on_verify_complete(list(accepted), batch_size)


def adaptive_controller(worker: Worker) -> Any:
    """SGLang's own controller with its own policy and default settings."""
    from sglang.srt.speculative.adaptive_runtime_state import AdaptiveController

    worker.speculative_num_steps = 7
    try:
        controller = AdaptiveController(worker)
    except TypeError:
        from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams

        controller = AdaptiveController(worker, AdaptiveSpeculativeParams(initial_steps=7))
    controller.init_states()
    return controller


def make_batch(reqs: list[Request], mode: Any, algorithm: Any) -> Any:
    """SGLang's ScheduleBatch without its constructor."""
    from sglang.srt.managers.schedule_batch import ScheduleBatch

    batch = object.__new__(ScheduleBatch)
    nothing = dict.fromkeys(ScheduleBatch.__dataclass_fields__)
    vars(batch).update({**nothing, "reqs": reqs, "forward_mode": mode, "spec_algorithm": algorithm})
    batch.seq_lens = Anything()
    batch.return_logprob = batch.return_hidden_states = False
    if mode.is_extend():
        batch.extend_lens, batch.prefix_lens = [3] * len(reqs), [1] * len(reqs)
    return batch


def make_scheduler(scenario: dict[str, Any]) -> Any:
    """SGLang's Scheduler without its constructor."""
    from sglang.srt.managers.scheduler import Scheduler
    from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    Scheduler.__getattr__ = lambda self, name: Anything()
    SchedulerBatchResultProcessor._handle_finish_state_updated_req = lambda self, *args: None
    worker = Worker(scenario)
    if scenario["adaptive"]:
        worker.controller = adaptive_controller(worker)
    drafting = scenario["depth"] is not None
    algorithm = Loose(is_none=lambda: not drafting)
    fields: dict[str, Any] = dict.fromkeys(SchedulerBatchResultProcessor.__dataclass_fields__, Anything())
    fields |= {"is_generation": True, "enable_overlap": scenario["overlap"], "model_worker": worker}
    scheduler = object.__new__(Scheduler)
    vars(scheduler).update(
        batch_result_processor=SchedulerBatchResultProcessor(**fields),
        draft_worker=worker if drafting else None,
        enable_overlap=scenario["overlap"],
        forward_ct=0,
        forward_sleep_time=None,
        gracefully_exit=False,
        hisparse_coordinator=None,
        internal_state=Loose(get_internal_state=lambda request: Loose(internal_state={})),
        invariant_checker=Loose(_check_all_pools=lambda *known: (False, ())),
        is_generation=True,
        last_batch=None,
        load_snapshot_writer=None,
        model_worker=worker,
        ps=Loose(tp_rank=0, attn_tp_rank=0, attn_cp_rank=0, pp_rank=0, dp_rank=None),
        running_batch=Loose(reqs=[]),
        scripted_scheduler_hook=None,
        server_args=Loose(speculative_num_steps=scenario["depth"], api_key="secret"),
        spec_algorithm=algorithm,
        _prev_step=None,
        _prev_prefill_end_ts=None,
        _deferred_input_requests=[],
        waiting_queue=[Request(f"r{number}", tokens) for number, tokens in enumerate(scenario["tokens"])],
        worker=worker,
    )

    def next_batch(**known: Any) -> Any:
        if scheduler.waiting_queue:
            reqs, scheduler.waiting_queue = scheduler.waiting_queue[:4], scheduler.waiting_queue[4:]
            scheduler.running_batch.reqs = scheduler.running_batch.reqs + reqs
            batch = make_batch(reqs, ForwardMode.EXTEND, algorithm)
        else:
            scheduler.running_batch.reqs = [r for r in scheduler.running_batch.reqs if not r.finished()]
            running = scheduler.running_batch.reqs
            batch = make_batch(running, ForwardMode.DECODE, algorithm) if running else None
        plan = Loose(running_batch=scheduler.running_batch, batch_to_run=batch)
        return plan if known else batch

    scheduler.get_next_batch_to_run = next_batch
    return scheduler


def serve(scenario: dict[str, Any]) -> dict[str, Any]:
    """Start, serve until idle, and give SGLang's own account."""
    scheduler = make_scheduler(scenario)
    requests = list(scheduler.waiting_queue)
    scheduler.get_init_info()

    def idle() -> None:
        scheduler.gracefully_exit = all(request.finished() for request in requests)

    scheduler.maybe_sleep_on_idle = idle
    scheduler.is_fully_idle = lambda *args, **kwargs: True
    scheduler.is_disable_overlap_for_batch = lambda *args, **kwargs: False
    loop: Callable[[], None] = scheduler.event_loop_overlap if scenario["overlap"] else scheduler.event_loop_normal
    loop()
    return {
        "status": scheduler.get_internal_state(Anything()).internal_state.get("speckit_trace"),
        "forward_ct": scheduler.forward_ct,
        "launched": scheduler.worker.launched,
        "requests": {
            request.rid: [len(request.output_ids), request.spec_verify_ct, request.spec_num_correct_drafts]
            for request in requests
        },
    }


def main() -> None:
    version = prepare()
    os.environ["SPECKIT_TRACE_DIR"] = sys.argv[1]
    import sglang.srt.managers.scheduler  # noqa: F401  (a scheduler process has it before it loads plugins)
    from sglang.srt.plugins import load_plugins

    load_plugins()
    print(json.dumps({"sglang": version, **serve(json.loads(sys.argv[2]))}))


if __name__ == "__main__":
    main()
