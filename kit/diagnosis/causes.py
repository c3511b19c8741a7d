"""What can go wrong with a server, in words: the closed set of causes, a heading and the next step for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["REMEDIES", "Cause", "Remedy"]


class Cause(StrEnum):
    """Root cause of a failed or degraded server; `NONE` means that no failure was found."""

    NONE = "none"
    UNKNOWN = "unknown"

    # The launch was wrong.
    UNKNOWN_FLAG = "unknown_flag"
    BAD_FLAG_VALUE = "bad_flag_value"
    PORT_IN_USE = "port_in_use"
    MISSING_MODULE = "missing_module"
    NO_SGLANG = "no_sglang"
    NATIVE_LIBRARY = "native_library"
    TOO_OLD_DRIVER = "too_old_driver"
    DISK_FULL = "disk_full"
    MODEL_GATED = "model_gated"
    MODEL_OFFLINE = "model_offline"
    MODEL_NOT_FOUND = "model_not_found"
    UNSUPPORTED_ARCHITECTURE = "unsupported_architecture"
    CONTEXT_LENGTH = "context_length"
    DRAFT_CONTEXT_LENGTH = "draft_context_length"
    TOKENIZER_MISMATCH = "tokenizer_mismatch"
    ADAPTIVE_CONFIG = "adaptive_config"
    ADAPTIVE_LADDER = "adaptive_ladder"
    PLUGIN_FAILED = "plugin_failed"
    ADAPTIVE_OFF = "adaptive_off"
    DEAD_DRAFT = "dead_draft"

    # The machine was too small, or its software broke.
    GPU_MEMORY_WEIGHTS = "gpu_memory_weights"
    GPU_MEMORY_KV_POOL = "gpu_memory_kv_pool"
    GPU_MEMORY_SHARE = "gpu_memory_share"
    GPU_MEMORY_GRAPHS = "gpu_memory_graphs"
    GPU_MEMORY_SERVING = "gpu_memory_serving"
    KV_POOL_FULL = "kv_pool_full"
    GPU_MEMORY = "gpu_memory"
    HOST_MEMORY = "host_memory"
    ADAPTIVE_BUFFER = "adaptive_buffer"
    SHAPE_MISMATCH = "shape_mismatch"
    ILLEGAL_MEMORY_ACCESS = "illegal_memory_access"
    VOCABULARY = "vocabulary"
    DEVICE_ASSERT = "device_assert"
    CUDA_ERROR = "cuda_error"
    NCCL_HANG = "nccl_hang"
    NCCL_ERROR = "nccl_error"
    WATCHDOG = "watchdog"
    NATIVE_CRASH = "native_crash"

    # Somebody else ended it, or only a request failed.
    KILLED = "killed"
    STOPPED = "stopped"
    REQUEST_FAILED = "request_failed"


@dataclass(frozen=True, slots=True)
class Remedy:
    """Heading of a cause, and what to do next."""

    heading: str
    advice: str


_ALL_ARMS = "in every arm, or the arms are no longer comparable"

REMEDIES: dict[Cause, Remedy] = {
    Cause.NONE: Remedy("no failure found", "nothing to do"),
    Cause.UNKNOWN: Remedy(
        "unknown failure",
        "keep the log with the report; the block shown with this, if there is one, is the first error in it",
    ),
    Cause.UNKNOWN_FLAG: Remedy(
        "a server flag that this SGLang does not have",
        "correct the flag in the spec; flags differ between SGLang versions",
    ),
    Cause.BAD_FLAG_VALUE: Remedy(
        "a server flag with a value that SGLang refuses", "correct the value in the spec; nothing was started"
    ),
    Cause.PORT_IN_USE: Remedy(
        "the port was taken",
        "another server still listens there: any answer from that port is not from this launch. Stop that "
        "process by its own id, or choose another port",
    ),
    Cause.MISSING_MODULE: Remedy(
        "a Python package is missing in the server's environment",
        "install it into the image and pin it, or choose a backend that does not need it, in every arm",
    ),
    Cause.NO_SGLANG: Remedy(
        "this Python has no SGLang",
        "name the interpreter that has it in SPECKIT_PYTHON, or install SGLang into the one that ran",
    ),
    Cause.NATIVE_LIBRARY: Remedy(
        "a native library is missing or was built for another version",
        "torch, CUDA and sglang-kernel must be of one build, and the kernels must know this GPU's generation: use the "
        "versions that this SGLang pins",
    ),
    Cause.TOO_OLD_DRIVER: Remedy(
        "the NVIDIA driver is missing or older than CUDA in the server's environment",
        "update the driver, or take an image with an older CUDA",
    ),
    Cause.DISK_FULL: Remedy(
        "no space left on the device",
        "free the disk that the log names: model cache, kernel caches or /dev/shm in a container",
    ),
    Cause.MODEL_GATED: Remedy(
        "the model is gated and this host has no permission",
        "accept the licence on the model's page and pass HF_TOKEN, or give a local folder",
    ),
    Cause.MODEL_OFFLINE: Remedy(
        "the model is not in the cache and the hub cannot be reached",
        "download it beforehand and mount the cache, or unset HF_HUB_OFFLINE where a network exists",
    ),
    Cause.MODEL_NOT_FOUND: Remedy(
        "there is no such model, revision or file", "check path, name and revision of target and draft"
    ),
    Cause.UNSUPPORTED_ARCHITECTURE: Remedy(
        "this SGLang does not know the model's architecture",
        "use a newer SGLang, or a draft whose config.json names an architecture this one has",
    ),
    Cause.CONTEXT_LENGTH: Remedy(
        "context length above what the model was made for", f"lower --context-length {_ALL_ARMS}"
    ),
    Cause.DRAFT_CONTEXT_LENGTH: Remedy(
        "the draft allows a shorter context than the target was given",
        "either set --context-length to at most the draft's limit in every arm and check that prompt and "
        "output fit, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, knowing that beyond the limit the "
        "draft is outside its training range, acceptance falls, and must be reported by context depth",
    ),
    Cause.TOKENIZER_MISMATCH: Remedy(
        "draft and target do not share a vocabulary",
        "use a draft made for this target; no speed can be had from tokens that mean different things",
    ),
    Cause.ADAPTIVE_CONFIG: Remedy(
        "the adaptive configuration has a form this SGLang does not read",
        'give slots by batch size, as in {"1": {"candidate_steps": [1, 3, 7]}}; the flat form is older',
    ),
    Cause.ADAPTIVE_LADDER: Remedy(
        "the start depth is not one of the adaptive candidates",
        "set --speculative-num-steps to one of the candidates, or add it to the ladder",
    ),
    Cause.PLUGIN_FAILED: Remedy(
        "an SGLang plugin failed",
        "SGLang goes on without a plugin that raises, so the run may be untraced: rebuild it for this SGLang, or "
        "leave it out in every arm",
    ),
    Cause.ADAPTIVE_OFF: Remedy(
        "adaptive speculation was asked for and switched off",
        "the arm runs at a fixed depth and must be named so; adaptive needs EAGLE or EAGLE3, top-k 1, and no "
        "attention data parallelism, multi-layer EAGLE, two-batch overlap or pdmux",
    ),
    Cause.DEAD_DRAFT: Remedy(
        "dead draft: no drafted token was ever accepted",
        "speculation is pure overhead here, and says nothing about the method or the GPU. Look, in this order, for a "
        "draft of another algorithm (an EAGLE3 draft under --speculative-algorithm EAGLE starts without an error), a "
        "draft trained for another target, a draft head quantised with the target, auxiliary layer ids not honoured",
    ),
    Cause.GPU_MEMORY_WEIGHTS: Remedy(
        "GPU out of memory while loading weights",
        "target and draft weights do not fit: free the GPU, use more of them, or a smaller dtype, in every arm",
    ),
    Cause.GPU_MEMORY_KV_POOL: Remedy(
        "GPU out of memory while allocating the KV pool",
        "with speculation the draft has its own pool beside the target's: lower --mem-fraction-static or "
        f"--max-total-tokens {_ALL_ARMS}",
    ),
    Cause.GPU_MEMORY_SHARE: Remedy(
        "the weights left nothing of the static memory share for a KV pool",
        f"raise --mem-fraction-static {_ALL_ARMS}, or free the GPU of what else runs there",
    ),
    Cause.GPU_MEMORY_GRAPHS: Remedy(
        "GPU out of memory while capturing CUDA graphs",
        "graphs are captured after the KV pool took its share: lower --mem-fraction-static or "
        f"--cuda-graph-max-bs-decode {_ALL_ARMS}",
    ),
    Cause.GPU_MEMORY_SERVING: Remedy(
        "GPU out of memory while serving",
        f"lower --mem-fraction-static or --chunked-prefill-size {_ALL_ARMS}; the points measured before it are void",
    ),
    Cause.KV_POOL_FULL: Remedy(
        "the KV pool had no room for the batch",
        f"raise --max-total-tokens or --mem-fraction-static {_ALL_ARMS}, or lower the concurrency",
    ),
    Cause.GPU_MEMORY: Remedy(
        "GPU out of memory, in a phase the log does not show",
        "keep the whole log: weights, KV pool, graphs and serving each need another remedy",
    ),
    Cause.HOST_MEMORY: Remedy(
        "the kernel's OOM killer ended the server: host memory",
        "give the container more memory or load fewer things at once; GPU flags do not help",
    ),
    Cause.ADAPTIVE_BUFFER: Remedy(
        "engine bug: CUDA-graph buffer sized for the launch depth, not for the largest adaptive depth",
        "launch at the largest candidate (--speculative-num-steps), or use a smaller ladder and name the arm "
        "after it; fixed in newer SGLang, so report it upstream with the build where it is not",
    ),
    Cause.SHAPE_MISMATCH: Remedy(
        "engine bug: a batch met a CUDA graph or buffer of another shape",
        "report it upstream with the build; another attention backend or graph batch list may avoid it, in every arm",
    ),
    Cause.ILLEGAL_MEMORY_ACCESS: Remedy(
        "CUDA illegal memory access",
        "this arm is not measured; restart the server before anything else, rerun once with "
        "CUDA_LAUNCH_BLOCKING=1 for the kernel's name, and try another attention backend in every arm",
    ),
    Cause.VOCABULARY: Remedy(
        "a lookup beyond the end of a table: a token id outside the vocabulary",
        "SGLang does not check `input_ids` and dies of an id that the model has no embedding for: send text, or ids "
        "of this target's own tokenizer. If only text was sent, tokenizer and weights, or the draft's token map, "
        "belong to different models",
    ),
    Cause.DEVICE_ASSERT: Remedy(
        "a CUDA kernel refused its input",
        "the line that says which check failed is not in this log: rerun once with CUDA_LAUNCH_BLOCKING=1 and keep the "
        "server's standard error. Most often it is a token id outside the vocabulary",
    ),
    Cause.CUDA_ERROR: Remedy(
        "CUDA error", "check driver, GPU architecture and the image's CUDA version against each other"
    ),
    Cause.NCCL_HANG: Remedy(
        "a collective operation timed out",
        "one rank stopped or never arrived: look for the first rank that logged an error, check the links "
        "between GPUs, and rerun with NCCL_DEBUG=INFO",
    ),
    Cause.NCCL_ERROR: Remedy(
        "NCCL error", "rerun with NCCL_DEBUG=INFO; check the links between GPUs and /dev/shm in the container"
    ),
    Cause.WATCHDOG: Remedy(
        "hang: the scheduler made no progress",
        "the point is not measured and is not a low throughput; start a fresh server. Health checks answer "
        "during such a hang, so watch for tokens instead",
    ),
    Cause.NATIVE_CRASH: Remedy(
        "a server process crashed in native code",
        "no Python error exists for it; rerun with PYTHONFAULTHANDLER=1 and report it upstream with the build",
    ),
    Cause.KILLED: Remedy(
        "a server process was killed from outside (SIGKILL)",
        "ask who did it: `docker inspect` tells the container's OOM kill, `dmesg -T` the kernel's, otherwise a "
        "person or a supervisor. The signal alone says nothing about memory",
    ),
    Cause.STOPPED: Remedy("stopped from outside", "nothing is wrong with the server; find out who stopped it"),
    Cause.REQUEST_FAILED: Remedy(
        "a request failed, the server lives",
        "correct the request: SGLang answers such a one with an empty 500 or a cut stream, which is a failure "
        "and not an empty answer",
    ),
}
