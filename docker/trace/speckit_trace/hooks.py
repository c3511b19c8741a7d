"""The hooks that SGLang calls, and the one object they share.

Each hook does its own bookkeeping around SGLang's function and always calls it exactly once. With the
recording paused a hook is one attribute test.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any

from speckit_trace.recorder import Recorder
from speckit_trace.server import server_facts, writes
from speckit_trace.targets import ADAPTIVE, PROCESSOR, SCHEDULER, Proof

CONTROL = "control"

Hook = Callable[..., Any]
Wrapper = Callable[[Hook], Hook]


class Tracer:
    """The state of the plugin in one scheduler process.

    `sink` is what the hooks write to: the recorder, or None before the start, while paused, and in processes
    that leave the writing to another rank.
    """

    def __init__(self, directory: Path, proof: Proof) -> None:
        self.directory = directory
        self.proof = proof
        self.recorder: Recorder | None = None
        self.sink: Recorder | None = None
        self._control = directory / CONTROL
        self._control_stamp: tuple[int, ...] = ()
        self._control_word = "on"

    def wrappers(self) -> dict[str, Wrapper]:
        """What runs in every iteration: put in place by hand, as SGLang's general wrapper would cost as much again."""
        return {
            f"{SCHEDULER}.run_batch": self.run_batch,
            f"{PROCESSOR}.process_batch_result_decode": self.decode,
            f"{PROCESSOR}.process_batch_result_prefill": self.other,
        }

    def hooks(self) -> dict[str, tuple[str, Hook]]:
        """Everything else: what is hooked where and how, for SGLang's hook registry."""
        return {
            f"{SCHEDULER}.get_init_info": ("after", self.start),
            f"{SCHEDULER}.run_event_loop": ("around", self.serve),
            f"{PROCESSOR}.process_batch_result_idle": ("around", self.idle),
            f"{ADAPTIVE}._activate": ("around", self.activate),
            f"{SCHEDULER}.on_idle": ("after", self.on_idle),
            f"{SCHEDULER}.flush_cache": ("after", self.flush_cache),
            f"{SCHEDULER}.get_internal_state": ("after", self.show),
        }

    # ---------------------------------------------------------------- once

    def start(self, info: object, scheduler: Any) -> None:
        """AFTER get_init_info: the scheduler is complete, and its parent does not yet believe it is ready."""
        if self.recorder is not None or not writes(scheduler):
            return
        try:
            facts = {**self.proof.facts(), **server_facts(scheduler)}
            replica = facts["ranks"]["dp_rank"]
            folder = self.directory if replica is None else self.directory / f"dp{replica}"
            folder.mkdir(exist_ok=True)
            self.recorder = self.sink = Recorder(folder, facts)
        except Exception as error:  # an exception would be logged as the scheduler's own; this is a refusal
            raise SystemExit(f"speckit_trace: cannot start a trace in {self.directory}: {error}") from error
        self.recorder.event("start", iteration=scheduler.forward_ct)
        self._obey(scheduler.forward_ct)

    def serve(self, original: Hook, scheduler: Any) -> Any:
        """AROUND run_event_loop: what a graceful shutdown returns from."""
        try:
            return original(scheduler)
        finally:
            if self.recorder is not None:
                graceful = bool(getattr(scheduler, "gracefully_exit", False))
                self.recorder.end(iteration=scheduler.forward_ct, graceful=graceful)

    # ---------------------------------------------------------------- every iteration

    def run_batch(self, original: Hook) -> Hook:
        """Scheduler.run_batch with launch time, queue lengths and depth kept."""

        def run_batch(scheduler: Any, batch: Any, pp_proxy_tensors: Any = None) -> Any:
            sink = self.sink
            if sink is None:
                return original(scheduler, batch, pp_proxy_tensors)
            sink.batch = batch
            launch_ns = monotonic_ns()
            result = original(scheduler, batch, pp_proxy_tensors)
            sink.launched(scheduler, batch, launch_ns)
            return result

        return run_batch

    def decode(self, original: Hook) -> Hook:
        """process_batch_result_decode, whose first act is to wait for the result, with the iteration recorded.

        Tokens and finish states are read before it, accepted counts after it: it is what computes them.
        """

        def process_batch_result_decode(processor: Any, batch: Any, result: Any) -> Any:
            sink = self.sink
            if sink is None:
                return original(processor, batch, result)
            sink.ready(batch, result)
            returned = original(processor, batch, result)
            sink.decoded(batch, result)
            return returned

        return process_batch_result_decode

    def other(self, original: Hook) -> Hook:
        """process_batch_result_prefill, which waits first as well, with the iteration recorded."""

        def process_batch_result_prefill(processor: Any, batch: Any, result: Any) -> Any:
            sink = self.sink
            if sink is not None:
                sink.processed(batch, result)
            return original(processor, batch, result)

        return process_batch_result_prefill

    def idle(self, original: Hook, processor: Any, batch: Any, result: Any) -> Any:
        """AROUND process_batch_result_idle: the same for the batches of a replica that has nothing to do."""
        return self.other(original)(processor, batch, result)

    def activate(self, original: Hook, controller: Any, *args: Any, **kwargs: Any) -> Any:
        """AROUND AdaptiveController._activate: called only when the depth may change."""
        before = controller.worker.speculative_num_steps
        returned = original(controller, *args, **kwargs)
        after = controller.worker.speculative_num_steps
        if self.sink is not None and before != after:
            self.sink.switched(controller, before, after)
        return returned

    # ---------------------------------------------------------------- between iterations

    def on_idle(self, returned: object, scheduler: Any) -> None:
        """AFTER Scheduler.on_idle: nothing is in flight, though requests may be waiting for memory."""
        if self.recorder is not None:
            self.recorder.forget()
            if _stamp(self._control) != self._control_stamp and scheduler.is_fully_idle():
                self._obey(scheduler.forward_ct)

    def flush_cache(self, flushed: object, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """AFTER Scheduler.flush_cache, which succeeds only at idle: the mark between phases of a measurement."""
        if self.recorder is not None and flushed:
            self._obey(scheduler.forward_ct)
            if self.sink is not None:
                self.sink.event("flush", iteration=scheduler.forward_ct)

    def show(self, returned: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
        """AFTER Scheduler.get_internal_state: the proof in /server_info."""
        state = getattr(returned, "internal_state", None)
        if isinstance(state, dict):
            state["speckit_trace"] = self.status()

    def status(self) -> dict[str, Any]:
        """What /server_info shows under `speckit_trace`."""
        recorder = self.recorder
        return {
            **self.proof.facts(),
            "directory": str(self.directory),
            "control": self._control_word,
            "enabled": self.sink is not None and self.sink.stopped is None,
            "stream": None if recorder is None else recorder.stream.id.hex,
            "records": 0 if recorder is None else recorder.iterations,
            "dropped": 0 if recorder is None else recorder.dropped,
            "stopped": None if recorder is None else recorder.stopped,
        }

    def _obey(self, iteration: int) -> None:
        """Follow the control file: `on`, `off`, or absent, which means on. Anything else changes nothing."""
        self._control_stamp = _stamp(self._control)
        self._control_word = _word(self._control)
        if self._control_word == "off" and self.sink is not None:
            self.sink.event("pause", iteration=iteration)
            self.sink = None
        elif self._control_word == "on" and self.sink is None and self.recorder is not None:
            self.sink = self.recorder
            self.sink.event("resume", iteration=iteration)


def _stamp(path: Path) -> tuple[int, ...]:
    """Changes whenever the file does; empty when there is none that can be seen."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()[:80]
    except FileNotFoundError:
        return "on"
    except OSError as error:
        return f"unreadable: {error}"
