"""How each cause shows itself in a log: the words that SGLang, PyTorch, argparse and the hub use for it.

The words were taken from the source of SGLang 0.5.15.post1 to 0.5.23 and from recorded logs. Needles decide,
by plain substring search; a pattern only pulls values out of the text for the title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kit.diagnosis.causes import Cause

__all__ = ["CONSEQUENCES", "EXCEPTIONS", "LINES", "Match", "Signature", "match"]


@dataclass(frozen=True, slots=True)
class Signature:
    """All `needles` occur in the text, in any case; `detail` is filled from the groups of `pattern`."""

    cause: Cause
    needles: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A cause and, where the text gave them, its values."""

    cause: Cause
    detail: str


def match(text: str, signatures: tuple[Signature, ...]) -> Match | None:
    """The first signature that fits a text."""
    lower = text.lower()
    for signature in signatures:
        if all(needle in lower for needle in signature.needles):
            found = signature.pattern.search(text) if signature.pattern is not None else None
            return Match(signature.cause, signature.detail.format(**found.groupdict()) if found is not None else "")
    return None


def _sign(cause: Cause, *needles: str, pattern: str = "", detail: str = "") -> Signature:
    return Signature(cause, needles, re.compile(pattern) if pattern else None, detail)


_OOM_KILLER = (
    ("out of memory: killed process",),
    ("oom-kill:constraint=",),
    ("invoked oom-killer",),
)

_CONTEXT = r"context_length \((?P<asked>\d{1,9})\).{0,80}derived context_length \((?P<allowed>\d{1,9})\)"
_ALLOCATE = r"Tried to allocate (?P<size>[\d.]{1,12} ?[KMG]iB)"

# On the text "Type: message" of an exception; the order is from particular to general.
EXCEPTIONS: tuple[Signature, ...] = (
    _sign(
        Cause.DRAFT_CONTEXT_LENGTH,
        "derived context_length",
        "target model's context_length",
        pattern=_CONTEXT,
        detail="{asked} tokens asked for, the draft allows {allowed}",
    ),
    _sign(
        Cause.DRAFT_CONTEXT_LENGTH,
        "derived context_length",
        "draft",
        pattern=_CONTEXT,
        detail="{asked} tokens asked for, the draft allows {allowed}",
    ),
    _sign(
        Cause.CONTEXT_LENGTH,
        "derived context_length",
        pattern=_CONTEXT,
        detail="{asked} tokens asked for, the model allows {allowed}",
    ),
    _sign(
        Cause.ADAPTIVE_BUFFER,
        "shared logits buffer",
        pattern=r"(?P<rows>\d{1,9}) rows\D{1,20}needs (?P<needed>\d{1,9})",
        detail="{rows} rows, {needed} needed",
    ),
    _sign(
        Cause.ADAPTIVE_LADDER,
        "--speculative-num-steps=",
        "candidate_steps",
        pattern=r"--speculative-num-steps=(?P<start>\d{1,6}).{0,60}candidate_steps (?P<ladder>\[[\d, ]{0,80}\])",
        detail="start {start}, candidates {ladder}",
    ),
    _sign(Cause.ADAPTIVE_CONFIG, "speculative_adaptive_config", "integer-string"),
    _sign(Cause.ADAPTIVE_CONFIG, "candidate_steps must be a list"),
    _sign(
        Cause.TOKENIZER_MISMATCH,
        "share the same vocabulary",
        pattern=r"target vocab_size=(?P<target>\d{1,9}) and draft vocab_size=(?P<draft>\d{1,9})",
        detail="target {target} tokens, draft {draft}",
    ),
    _sign(Cause.TOKENIZER_MISMATCH, "vocab-mismatched"),
    _sign(Cause.TOKENIZER_MISMATCH, "conflicts with tokenizer vocab"),
    _sign(
        Cause.UNSUPPORTED_ARCHITECTURE,
        "model architectures",
        "are not supported for now",
        pattern=r"Model architectures (?P<names>\[.{0,120}?\]) are not",
        detail="{names}",
    ),
    _sign(Cause.UNSUPPORTED_ARCHITECTURE, "failed to be inspected"),
    _sign(
        Cause.UNSUPPORTED_ARCHITECTURE,
        "does not recognize this architecture",
        pattern=r"has model type `(?P<name>[\w.-]{1,80})`",
        detail="model type {name}",
    ),
    _sign(
        Cause.MODEL_GATED,
        "gated repo",
        pattern=r"https://huggingface\.co/(?P<name>[\w.-]{1,80}/[\w.-]{1,80})",
        detail="{name}",
    ),
    _sign(Cause.MODEL_GATED, "gatedrepoerror"),
    _sign(Cause.MODEL_OFFLINE, "offlinemodeisenabled"),
    _sign(Cause.MODEL_OFFLINE, "localentrynotfounderror"),
    _sign(Cause.MODEL_OFFLINE, "outgoing traffic has been disabled"),
    _sign(Cause.MODEL_OFFLINE, "couldn't connect to", "huggingface.co"),
    _sign(Cause.MODEL_OFFLINE, "cannot find an appropriate cached snapshot"),
    _sign(
        Cause.MODEL_NOT_FOUND,
        "is not a local folder and is not a valid model identifier",
        pattern=r"(?P<name>[\w./-]{1,120}) is not a local folder",
        detail="{name}",
    ),
    _sign(Cause.MODEL_NOT_FOUND, "repositorynotfounderror"),
    _sign(Cause.MODEL_NOT_FOUND, "revisionnotfounderror"),
    _sign(Cause.MODEL_NOT_FOUND, "incorrect path_or_model_id"),
    _sign(Cause.MODEL_NOT_FOUND, "does not appear to have a file named"),
    _sign(
        Cause.PORT_IN_USE,
        "address already in use",
        pattern=r"port:? (?P<port>\d{2,5})",
        detail="port {port}",
    ),
    _sign(
        Cause.PORT_IN_USE,
        "is not available in",
        "seconds",
        pattern=r"at (?P<port>\d{2,5}) is not available",
        detail="port {port}",
    ),
    _sign(
        Cause.TOKENIZER_MISMATCH,
        "share one vocab",
        pattern=r"draft vocab \((?P<draft>\d{1,9})\) != target vocab \((?P<target>\d{1,9})\)",
        detail="target {target} tokens, draft {draft}",
    ),
    _sign(Cause.NO_SGLANG, "modulenotfounderror", "no module named 'sglang'"),
    _sign(
        Cause.NATIVE_LIBRARY,
        "cannot open shared object file",
        pattern=r"(?P<name>lib[\w.+-]{1,80}): cannot open",
        detail="{name}",
    ),
    _sign(Cause.NATIVE_LIBRARY, "undefined symbol", pattern=r"undefined symbol: (?P<name>\w{1,80})", detail="{name}"),
    _sign(Cause.NATIVE_LIBRARY, "could not load any common_ops library"),
    _sign(Cause.NATIVE_LIBRARY, "no kernel image is available"),
    _sign(Cause.TOO_OLD_DRIVER, "nvidia driver on your system is too old"),
    _sign(Cause.TOO_OLD_DRIVER, "found no nvidia driver on your system"),
    _sign(Cause.TOO_OLD_DRIVER, "driver version is insufficient"),
    _sign(Cause.DISK_FULL, "no space left on device"),
    _sign(
        Cause.BAD_FLAG_VALUE,
        "must be between 1 and 65535",
        pattern=r"(?P<what>\w{1,40} \(\d{1,9}\) must be between 1 and 65535)",
        detail="{what}; SGLang derives it from --port",
    ),
    _sign(
        Cause.MISSING_MODULE,
        "modulenotfounderror",
        pattern=r"No module named '(?P<name>[\w.]{1,120})'",
        detail="{name}",
    ),
    _sign(
        Cause.MISSING_MODULE,
        "importerror",
        pattern=r"cannot import name '(?P<name>\w{1,120})' from '(?P<module>[\w.]{1,120})'",
        detail="{name} from {module}",
    ),
    # Where the launch stood decides which kind it is.
    _sign(Cause.GPU_MEMORY, "cuda out of memory", pattern=_ALLOCATE, detail="{size} asked for"),
    _sign(Cause.GPU_MEMORY, "outofmemoryerror", pattern=_ALLOCATE, detail="{size} asked for"),
    _sign(
        Cause.GPU_MEMORY_SHARE,
        "not enough memory",
        "--mem-fraction-static",
        pattern=r"mem_fraction_static=(?P<fraction>[\d.]{1,12})",
        detail="--mem-fraction-static {fraction}",
    ),
    _sign(Cause.GPU_MEMORY, "cublas_status_alloc_failed"),
    _sign(Cause.KV_POOL_FULL, "decode out of memory"),
    _sign(Cause.KV_POOL_FULL, "prefill out of memory"),
    _sign(Cause.ILLEGAL_MEMORY_ACCESS, "illegal memory access"),
    _sign(
        Cause.SHAPE_MISMATCH,
        "the size of tensor a",
        "must match the size of tensor b",
        pattern=r"tensor a \((?P<a>\d{1,12})\).{0,40}tensor b \((?P<b>\d{1,12})\)",
        detail="{a} against {b}",
    ),
    _sign(Cause.NCCL_HANG, "collective operation timeout"),
    _sign(Cause.NCCL_ERROR, "nccl error"),
    _sign(Cause.NCCL_ERROR, "distbackenderror"),
    # What torch says on a CPU; on a GPU the kernel says it, in a line before the exception.
    _sign(Cause.VOCABULARY, "indexerror: index out of range in self"),
    _sign(Cause.DEVICE_ASSERT, "device-side assert triggered"),
    _sign(Cause.CUDA_ERROR, "cuda error", pattern=r"CUDA error: (?P<what>[^\n]{1,100})", detail="{what}"),
    _sign(Cause.HOST_MEMORY, "cannot allocate memory"),
    _sign(Cause.STOPPED, "keyboardinterrupt"),
    _sign(
        Cause.REQUEST_FAILED,
        "unexpected keyword argument",
        pattern=r"[Uu]nexpected keyword argument '(?P<key>[^'\n]{1,80})'",
        detail="{key} is no sampling parameter",
    ),
)

# On log lines outside any traceback.
LINES: tuple[Signature, ...] = (
    *(_sign(Cause.HOST_MEMORY, *needles) for needles in _OOM_KILLER),
    _sign(Cause.NO_SGLANG, "no module named sglang"),
    _sign(Cause.NO_SGLANG, "no module named 'sglang'"),
    _sign(
        Cause.UNKNOWN_FLAG,
        ": error: unrecognized arguments:",
        pattern=r"unrecognized arguments: (?P<flag>[^\n]{1,200})",
        detail="{flag}",
    ),
    _sign(
        Cause.UNKNOWN_FLAG,
        ": error: ambiguous option:",
        pattern=r"ambiguous option: (?P<flag>\S{1,120})",
        detail="{flag} is an abbreviation of several",
    ),
    _sign(
        Cause.BAD_FLAG_VALUE,
        ": error: argument ",
        pattern=r": error: argument (?P<what>[^\n]{1,160})",
        detail="{what}",
    ),
    _sign(
        Cause.BAD_FLAG_VALUE,
        ": error: the following arguments are required",
        pattern=r"are required: (?P<what>[^\n]{1,160})",
        detail="{what} missing",
    ),
    _sign(
        Cause.PORT_IN_USE,
        "address already in use",
        pattern=r"(?:', |port )(?P<port>\d{2,5})",
        detail="port {port}",
    ),
    # The two kernels of torch that look up embeddings.
    _sign(Cause.VOCABULARY, "assertion `srcindex < srcselectdimsize` failed"),
    _sign(Cause.VOCABULARY, "vectorized gather kernel index out of bounds"),
    _sign(
        Cause.NCCL_HANG,
        "watchdog caught collective operation timeout",
        pattern=r"OpType=(?P<operation>\w{1,40}).{0,120}ran for (?P<ms>\d{1,12}) milliseconds",
        detail="{operation} for {ms} ms",
    ),
    _sign(Cause.NCCL_HANG, "processgroupnccl's watchdog got stuck"),
    _sign(
        Cause.WATCHDOG,
        "watchdog timeout",
        "soft=false",
        pattern=r"watchdog_timeout=(?P<seconds>[\d.]{1,9})",
        detail="{seconds} s",
    ),
    _sign(
        Cause.WATCHDOG,
        "watchdog",
        "no progress",
        pattern=r"no progress for (?P<seconds>[\d.]{1,9}) s",
        detail="{seconds} s",
    ),
    _sign(
        Cause.NATIVE_CRASH, "fatal python error", pattern=r"Fatal Python error: (?P<what>[^\n]{1,80})", detail="{what}"
    ),
    _sign(Cause.NATIVE_CRASH, "segmentation fault (core dumped)"),
    _sign(
        Cause.PLUGIN_FAILED,
        "speckit_trace: ",
        pattern=r"speckit_trace: (?P<what>[^\n]{1,300})",
        detail="{what}",
    ),
)

# Said by a process about another one that had failed before: never the root, unless nothing else is there.
CONSEQUENCES: tuple[str, ...] = (
    "scheduler died during initialization",
    "initialization failed. please see the error messages above",
    # A rank that lost another one: the other rank's error is the reason, wherever it stands in the file.
    "connection closed by peer",
    "connection reset by peer",
)
