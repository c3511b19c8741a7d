"""What a stand-in can be asked to get wrong: `--fault NAME[=VALUE]`, each the way a real server gets it wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from typing import Any

from kit.errors import SpecError

__all__ = ["Faults", "LaunchFailure", "Strike", "known_faults", "parse_faults"]


class Strike(StrEnum):
    """Faults of single requests."""

    HTTP_500_EMPTY = "http-500-empty"
    HTTP_503 = "http-503"
    CUT_BODY = "cut-body"
    STREAM_ERROR = "stream-error"
    ABORT = "abort"
    EMPTY_OUTPUT = "empty-output"
    NAN = "nan"
    MALFORMED = "malformed"
    HANG = "hang"


class LaunchFailure(StrEnum):
    """Faults that end a launch before it is ready."""

    OOM_WEIGHTS = "launch-oom-weights"
    OOM_KV = "launch-oom-kv"
    OOM_GRAPH = "launch-oom-graph"
    PORT_TAKEN = "launch-port-taken"
    DRAFT_CONTEXT = "launch-draft-context"


def _fault(about: str, reads: Callable[[str], Any], *, bare: Any = None, default: Any = None) -> Any:
    """A fault whose value is read by `reads`; `bare` is its value when none is written, None if one must be."""
    return field(default=default, metadata={"about": about, "reads": reads, "bare": bare})


def _switch(about: str) -> Any:
    return _fault(about, reads=_no_value, bare=True, default=False)


def _requests(about: str) -> Any:
    return _fault(f"{about}, for every VALUE-th request or for all", _count, bare=1)


def _no_value(text: str) -> bool:
    raise ValueError(f"takes no value, not {text}")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"takes a whole number above 0, not {text}")
    return int(text)


def _natural(text: str) -> int:
    return 0 if text == "0" else _count(text)


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one launch; a field is the fault of that name with dashes. Without any, nothing is wrong."""

    http_500_empty: int | None = _requests("status 500 without a body")
    http_503: int | None = _requests("status 503")
    cut_body: int | None = _requests("the body ends after its first chunk")
    stream_error: int | None = _requests("an error event after the first chunk of a 200 stream")
    abort: int | None = _requests("aborted by the server after its first tokens")
    empty_output: int | None = _requests("finishes without a token")
    nan: int | None = _requests("NaN in the logits, reported as a stop")
    malformed: int | None = _requests("meta_info without completion_tokens")
    hang: int | None = _requests("never answered, while /health stays 200")
    crash_after: int | None = _fault("illegal memory access at the request after VALUE others", _natural)
    slow_start: int | None = _fault("ready VALUE seconds later", _count)
    launch_oom_weights: bool = _switch("no memory for the weights")
    launch_oom_kv: bool = _switch("no memory for the KV pool")
    launch_oom_graph: bool = _switch("no memory for the CUDA graphs")
    launch_port_taken: bool = _switch("the port is taken")
    launch_draft_context: bool = _switch("the draft's context is shorter than the target's")
    wrong_model: str | None = _fault("serves the model VALUE", str, bare="another/model")
    speculating_baseline: bool = _switch("speculates (K = 3) although no flag says so")
    leftover_cache: bool = _switch("the radix cache is on and holds every prompt")
    drop_trace: bool = _switch("no trace is written")
    trace_silent: bool = _switch("the trace is there and nothing is ever recorded in it")
    trace_stops: int | None = _fault("the trace stops after VALUE decode iterations and drops the rest", _natural)
    trace_garbled: int | None = _fault("decode iteration VALUE of the trace, counted from 1, cannot be read", _count)
    late_host: int | None = _fault("every iteration ends VALUE milliseconds late", _count, bare=20)
    cap_48: bool = _switch("48 running requests at most, whatever was asked for")
    eager_above: int | None = _fault("batches above VALUE decode without a CUDA graph", _natural)
    dead_draft: bool = _switch("no draft token is ever accepted")
    adaptive_off: bool = _switch("adaptive mode is dropped with a warning")
    retract: int | None = _fault("a KV pool of VALUE tokens and admission that hopes for short answers", _count)
    length_before_stop: bool = _switch("looks at the length limit before the end of sequence, as 0.5.15 does")

    def strike(self, ordinal: int) -> Strike | None:
        """What befalls the request of that number, counted from 1."""
        for strike in Strike:
            every: int | None = getattr(self, _attribute(strike))
            if every and ordinal % every == 0:
                return strike
        return None

    @property
    def launch_failure(self) -> LaunchFailure | None:
        """How the launch ends before it is ready."""
        return next((failure for failure in LaunchFailure if getattr(self, _attribute(failure))), None)


def known_faults() -> tuple[tuple[str, str], ...]:
    """Every fault by name, with what it does."""
    return tuple((each.name.replace("_", "-"), each.metadata["about"]) for each in fields(Faults))


def parse_faults(given: Sequence[str]) -> Faults:
    """Faults from the values of `--fault`. Raises SpecError for an unknown name or an unreadable value."""
    known = {each.name.replace("_", "-"): each for each in fields(Faults)}
    values = {}
    for text in given:
        name, written, value = text.partition("=")
        if name not in known:
            raise SpecError(f"--fault {name}: no such fault; known are {', '.join(known)}")
        values[known[name].name] = _read(name, known[name], value if written else None)
    return Faults(**values)


def _read(name: str, fault: Field[Any], value: str | None) -> Any:
    if value is None:
        if fault.metadata["bare"] is None:
            raise SpecError(f"--fault {name}: needs a value ({fault.metadata['about']}); write {name}=VALUE")
        return fault.metadata["bare"]
    try:
        return fault.metadata["reads"](value)
    except ValueError as error:
        raise SpecError(f"--fault {name}: {error}; {fault.metadata['about']}") from None


def _attribute(name: str) -> str:
    return name.replace("-", "_")
