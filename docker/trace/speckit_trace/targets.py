"""What the plugin depends on in SGLang, and the check that the running SGLang is one that was reviewed.

`HOOKED` functions are wrapped. `WITNESSES` are not, but the meaning of a record rests on them: the order of
the event loop, when a result is waited for, what a copy of a batch carries, who counts as finished. The
SHA-256 of the source of all of them is compared with `known.json`, made from SGLang's wheels by `known.py`.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speckit_trace import __version__
from speckit_trace.packages import packages

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
PROCESSOR = "sglang.srt.managers.scheduler_components.batch_result_processor.SchedulerBatchResultProcessor"
_BATCH = "sglang.srt.managers.schedule_batch"
ADAPTIVE = "sglang.srt.speculative.adaptive_runtime_state.AdaptiveController"

# The first parameters that are relied on, by name and position.
HOOKED: Mapping[str, tuple[str, ...]] = {
    f"{SCHEDULER}.get_init_info": ("self",),
    f"{SCHEDULER}.run_event_loop": ("self",),
    f"{SCHEDULER}.run_batch": ("self", "batch", "pp_proxy_tensors"),
    f"{SCHEDULER}.on_idle": ("self",),
    f"{SCHEDULER}.flush_cache": ("self",),
    f"{SCHEDULER}.get_internal_state": ("self", "recv_req"),
    f"{PROCESSOR}.process_batch_result_decode": ("self", "batch", "result"),
    f"{PROCESSOR}.process_batch_result_prefill": ("self", "batch", "result"),
    f"{PROCESSOR}.process_batch_result_idle": ("self", "batch", "result"),
    f"{ADAPTIVE}._activate": ("self", "speculative_num_steps"),
}

WITNESSES = (
    f"{SCHEDULER}.event_loop_normal",
    f"{SCHEDULER}.event_loop_overlap",
    f"{SCHEDULER}.is_fully_idle",
    f"{SCHEDULER}.process_batch_result",
    f"{PROCESSOR}._resolve_spec_v2_tokens",
    f"{_BATCH}.ScheduleBatch.copy",
    f"{_BATCH}.Req.finished",
    f"{ADAPTIVE}.activate_step_by_batch",
    f"{ADAPTIVE}.on_verify_complete",
)


# Wrapped by functions of exactly their signature.
_WHOLE_SIGNATURE = frozenset(
    {
        f"{SCHEDULER}.run_batch",
        f"{PROCESSOR}.process_batch_result_decode",
        f"{PROCESSOR}.process_batch_result_prefill",
    }
)


class Refusal(Exception):
    """The plugin must not run here; the message says why and what to do."""


@dataclass(frozen=True)
class Proof:
    """What was found in the running process: digests of hooked and witnessed functions, and their standing.

    `reviewed_as` is the SGLang version whose reviewed sources these are, None when `override` let unknown
    ones pass. `sha` is the digest of the plugin's own files.
    """

    targets: Mapping[str, str]
    witnesses: Mapping[str, str | None]
    reviewed_as: str | None
    override: bool
    sha: str

    def facts(self) -> dict[str, Any]:
        """For the header of a trace and for /server_info."""
        return {
            "version": __version__,
            "sha": self.sha,
            "targets": dict(self.targets),
            "witnesses": dict(self.witnesses),
            "reviewed_as": self.reviewed_as,
            "override": self.override,
            "packages": packages(),
        }


def examine(*, allow_unknown: bool) -> Proof:
    """Find every target and compare it with what was reviewed.

    Args:
        allow_unknown: go on with sources nobody reviewed, and say so in `Proof.override`.

    Raises:
        Refusal: a target is missing, is called differently, or (unless allowed) has unknown source text.
    """
    targets = {path: _checked(path, parameters) for path, parameters in HOOKED.items()}
    witnesses = {path: _witnessed(path) for path in WITNESSES}
    found = {**targets, **witnesses}
    known = known_digests()
    reviewed_as = next((version for version, digests in known.items() if digests == found), None)
    if reviewed_as is None and not allow_unknown:
        strange = _strange(found, known)
        raise Refusal(
            f"{strange} has source text that was not reviewed (reviewed: SGLang {', '.join(known)}); "
            "use one of these versions, or set SPECKIT_TRACE_ALLOW_UNKNOWN=1 and distrust the trace"
        )
    return Proof(targets, witnesses, reviewed_as, override=reviewed_as is None, sha=own_digest())


def known_digests() -> dict[str, dict[str, str | None]]:
    """Digest of every hooked and witnessed function, by SGLang version."""
    text = Path(__file__).with_name("known.json").read_text(encoding="utf-8")
    known: dict[str, dict[str, str | None]] = json.loads(text)
    return known


def own_digest() -> str:
    """SHA-256 over names and contents of the plugin's files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def source_digest(function: Callable[..., Any]) -> str:
    """SHA-256 of the text `inspect.getsource` gives for the function under its wrappers."""
    return hashlib.sha256(inspect.getsource(inspect.unwrap(function)).encode()).hexdigest()


def resolve(path: str) -> Callable[..., Any]:
    """The function at a dotted path; raises Refusal when there is none."""
    try:
        function: Callable[..., Any] = pkgutil.resolve_name(path)
    except (ImportError, AttributeError) as error:
        raise Refusal(
            f"{path} is not there ({error}); this SGLang is laid out differently, nothing was hooked"
        ) from error
    return function


def _checked(path: str, parameters: tuple[str, ...]) -> str:
    function = resolve(path)
    names = tuple(inspect.signature(inspect.unwrap(function)).parameters)
    relied_on = names if path in _WHOLE_SIGNATURE else names[: len(parameters)]
    if relied_on != parameters:
        raise Refusal(f"{path} takes ({', '.join(names)}) and not ({', '.join(parameters)}, ...); nothing was hooked")
    try:
        return source_digest(function)
    except (OSError, TypeError) as error:
        raise Refusal(f"{path} has no readable source ({error}); install SGLang with its .py files") from error


def _witnessed(path: str) -> str | None:
    try:
        return source_digest(resolve(path))
    except (Refusal, OSError, TypeError):
        return None


def _strange(found: Mapping[str, str | None], known: Mapping[str, Mapping[str, str | None]]) -> str:
    """The functions that differ from the most similar reviewed version."""
    differing = [[path for path in found if digests.get(path) != found[path]] for digests in known.values()]
    return ", ".join(sorted(differing, key=len)[0])
