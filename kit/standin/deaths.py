"""How a server dies, and what its log says then: the words of SGLang, PyTorch and uvicorn."""

from __future__ import annotations

import logging
import os
import signal
from typing import NoReturn

from kit.standin.faults import LaunchFailure
from kit.standin.settings import Settings

__all__ = ["die", "fail_launch", "illegal_memory_access"]

_LOG = logging.getLogger("sglang")
_MEMORY = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 139.72 GiB of which {free} is free."
    " Including non-PyTorch memory, this process has 139.11 GiB memory in use."
)
_OOM = "torch.OutOfMemoryError: "
_AT_START = (
    '  File "sglang/srt/managers/scheduler.py", in run_scheduler_process\n    scheduler = Scheduler(\n'
    '  File "sglang/srt/managers/scheduler.py", in __init__\n    self.init_model_worker()\n'
)


def die(reason: str, *, serving: bool = False) -> NoReturn:
    """End as SGLang does: the scheduler dies of an exception, and its parent kills the whole tree and itself."""
    _LOG.error("Scheduler hit an exception: Traceback (most recent call last):\n%s\n", reason)
    if serving:
        _LOG.error("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    else:
        _LOG.error("Received sigquit from a child process. It usually means the child failed.")
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(1)


def illegal_memory_access() -> NoReturn:
    """Die while serving, as of a kernel that reads past its buffer."""
    die(
        '  File "sglang/srt/managers/scheduler.py", in run_scheduler_process\n    scheduler.run_event_loop()\n'
        '  File "sglang/srt/managers/scheduler.py", in run_batch\n'
        "    batch_result = self.model_worker.forward_batch_generation(\n"
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be"
        " incorrect.",
        serving=True,
    )


def fail_launch(failure: LaunchFailure, settings: Settings) -> NoReturn:
    """End a launch that cannot succeed, with what SGLang logs from there on."""
    match failure:
        case LaunchFailure.PORT_TAKEN:
            _refuse_port(settings)
        case LaunchFailure.OOM_WEIGHTS:
            _LOG.info("Load weight begin. avail mem=47.21 GB")
            die(_loading("load_model", "model = _initialize_model(") + _OOM + _memory("896.00 MiB", "512.38 MiB"))
        case LaunchFailure.OOM_KV:
            _weights()
            die(_pool() + _OOM + _memory("1.15 GiB", "802.38 MiB"))
        case LaunchFailure.OOM_GRAPH:
            _weights()
            _LOG.info("Memory pool end. avail mem=6.83 GB")
            _LOG.info("Capture target verify CUDA graph begin. backend=full, num_tokens_per_bs=4, bs=[1, 2, 4, 8]")
            die(_capturing(_memory("258.00 MiB", "96.19 MiB")))
        case LaunchFailure.DRAFT_CONTEXT:
            _weights()
            die(
                '  File "sglang/srt/configs/model_config.py", in _derive_context_length\n    raise ValueError(\n'
                f"ValueError: Warning: Target model's context_length ({settings.context_length}) is greater than the"
                f" derived context_length ({settings.context_length // 2}). This may lead to incorrect model outputs or"
                " CUDA errors."
            )


def _memory(asked: str, free: str) -> str:
    return _MEMORY.format(asked=asked, free=free)


def _weights() -> None:
    _LOG.info("Load weight begin. avail mem=47.21 GB")
    _LOG.info("Load weight end. elapsed=6.71 s, type=LlamaForCausalLM, avail mem=31.96 GB, mem usage=15.25 GB.")


def _loading(function: str, line: str) -> str:
    return f'{_AT_START}  File "sglang/srt/model_loader/loader.py", in {function}\n    {line}\n'


def _pool() -> str:
    return f'{_AT_START}  File "sglang/srt/mem_cache/memory_pool.py", in _create_buffers\n    torch.zeros(\n'


def _capturing(reason: str) -> str:
    """The graph runner wraps the error of the allocator and adds advice."""
    runner = '  File "sglang/srt/model_executor/runner/decode_cuda_graph_runner.py", in __init__\n'
    return (
        f"{runner}    self.capture()\n{_OOM}{reason}\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        f"Traceback (most recent call last):\n{runner}    raise Exception(\n"
        f"Exception: Capture cuda graph failed: {reason}\nPossible solutions:\n"
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
        "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)"
    )


def _refuse_port(settings: Settings) -> NoReturn:
    address = (settings.arguments["host"], settings.arguments["port"])
    _LOG.info("INFO:     Started server process [%d]", os.getpid())
    _LOG.info("INFO:     Waiting for application startup.")
    _LOG.info("INFO:     Application startup complete.")
    _LOG.error("ERROR:    [Errno 98] error while attempting to bind on address %s: address already in use", address)
    raise SystemExit(1)
