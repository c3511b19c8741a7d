"""What was launched, what was sent and what came back: one value for each thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from kit.records.columns import Ints, Trace
from kit.units import Nanoseconds, Seconds, Tokens

__all__ = [
    "FAULT",
    "NO_TEXT",
    "SYNTHETIC",
    "Cell",
    "GpuSample",
    "Launch",
    "LaunchStatus",
    "Origin",
    "Outcome",
    "Phase",
    "Repetition",
    "RequestRecord",
    "Resumption",
    "Role",
    "RunFacts",
    "RunHeader",
]

FAULT = "FAULT ASKED FOR: "
"""How the declaration of a stand-in's fault begins."""

SYNTHETIC = "SYNTHETIC CONTENT: class "
"""How the declaration of a class of prompts begins whose text is no natural one; the name of the class follows."""

NO_TEXT = "tokens are counted and the text is empty"
"""What `error` says of an answer that ended well and gave the user nothing to read."""

JsonObject = Mapping[str, Any]


class Origin(StrEnum):
    """Where the facts come from; every report says it in its first line unless they were measured."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    IMPORTED = "imported"
    ATTACHED = "attached"


class Role(StrEnum):
    """Why a launch exists. Only `MEASURE` launches enter an arm's own estimate."""

    MEASURE = "measure"
    AA_SPEED = "aa_speed"  # the baseline a second time in the same block: the noise floor of speed
    CLOSING = "closing"  # the baseline once more at the end of the run: drift
    TRACE_COST = "trace_cost"  # one arm once more with the trace on and off in turns: what the trace costs


class LaunchStatus(StrEnum):
    """How a server start ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    VOID = "void"  # its trace does not prove what ran: none of its cells may be used


class Phase(StrEnum):
    """Whether a repetition counts."""

    WARMUP = "warmup"
    TIMED = "timed"
    OUTPUTS = "outputs"  # answered to the natural end, to be compared token by token; never timed
    PREFILL = "prefill"  # the baseline's server is asked once more, by prefilling what two outputs have in common
    DISTURBED = "disturbed"  # timed while the host was busy with something else, and made again
    TRACED = "traced"  # of a launch that shows what the trace costs, with it
    UNTRACED = "untraced"  # and without it
    OFFERED = "offered"  # sent by the clock at a rate, whatever the server does


class Outcome(StrEnum):
    """What became of a request. Everything but `OK` is a failure, counted and never retried."""

    OK = "ok"
    HTTP_ERROR = "http_error"  # a status other than 200
    STREAM_ERROR = "stream_error"  # an error object inside a 200 stream
    CUT = "cut"  # the body ended before the final chunk
    ABORTED = "aborted"  # finish reason "abort"
    EMPTY = "empty"  # finished without a token
    NAN = "nan"  # SGLang reports NaN logits as a stop named "NaN happened"
    TIMEOUT = "timeout"
    STALLED = "stalled"  # nothing came for any request in flight, for load.silence_timeout_s: the server hangs
    REFUSED = "refused"  # nobody listens
    DNS = "dns"  # the name has no address
    RESET = "reset"  # the connection broke before an answer
    MALFORMED = "malformed"  # an answer that is not what the contract promises


@dataclass(frozen=True, slots=True)
class RunHeader:
    """One invocation of the kit, written before its first request.

    `spec_json` is the expanded spec, `spec_hash` the SHA-256 of its registered part (docs/method.md 2.7).
    `declarations` are the reasons, known before the first number, why the run is less than its spec asks for.
    """

    run_id: str
    origin: Origin
    spec_name: str
    spec_json: str
    spec_hash: str
    workload_hash: str
    rules_version: int
    kit_version: str
    created_utc: str
    host: JsonObject
    spec_commit: str | None = None
    spec_committed_utc: str | None = None
    declarations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """One server start of one arm. `launch` counts from 0 in the order in which servers were started."""

    launch: int
    block: int
    position: int
    arm: str
    role: Role
    command: tuple[str, ...]
    started_utc: str
    status: LaunchStatus
    startup_s: Seconds | None = None
    exit_code: int | None = None
    server_info: JsonObject | None = None
    failure: str | None = None
    log: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Cell:
    """One concurrency of one launch, 0 where requests are sent by the clock; `position` is its place in the launch."""

    cell: int
    launch: int
    concurrency: int
    position: int


@dataclass(frozen=True, slots=True)
class Repetition:
    """One pass over a cell, stored in one transaction. `client` holds the generator's self-check."""

    repetition: int
    cell: int
    phase: Phase
    started_utc: str
    started_ns: Nanoseconds
    ended_ns: Nanoseconds
    client: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RequestRecord:
    """One request and everything that came back.

    `histogram[j]` = verify rounds in which exactly j drafts were accepted; None when the server reported no
    verify round. `chunk_ns` (arrival) and `chunk_tokens` have one entry a streamed chunk that brought tokens;
    both are empty where no stream was recorded, and `first_token_ns` is then None. `output_ids` holds the
    completion, first token (from prefill) included.
    """

    repetition: int
    index: int
    rid: str
    prompt: str
    prompt_class: str
    max_new_tokens: Tokens
    sent_ns: Nanoseconds
    ended_ns: Nanoseconds
    outcome: Outcome
    status: int | None = None
    first_token_ns: Nanoseconds | None = None
    finish_reason: str | None = None
    error: str | None = None
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    verify_rounds: int | None = None
    correct_drafts: int | None = None
    histogram: tuple[int, ...] | None = None
    retractions: int | None = None
    meta_info: JsonObject | None = None
    output_ids: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    chunk_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    chunk_tokens: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class GpuSample:
    """What NVML said of one GPU at one moment of a repetition; None is what it did not tell.

    `energy_mj` counts up since the driver was loaded; `slowdown` is NVML's bit mask of reasons why the clock is not
    higher; `processes` counts the compute processes on the GPU, whosever they are.
    """

    repetition: int
    gpu: int
    at_ns: Nanoseconds
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    temperature_c: int | None = None
    slowdown: int | None = None
    used_mib: int | None = None
    busy_percent: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Resumption:
    """A later sitting of the same run: when it began, with which kit, on what, and its first launch."""

    started_utc: str
    kit_version: str
    first_launch: int
    host: JsonObject


@dataclass(frozen=True, slots=True, eq=False)
class RunFacts:
    """A whole run as read back from its file. Every tuple is in the order in which things happened."""

    header: RunHeader
    launches: tuple[Launch, ...]
    cells: tuple[Cell, ...]
    repetitions: tuple[Repetition, ...]
    requests: tuple[RequestRecord, ...]
    trace: Trace
    resumptions: tuple[Resumption, ...] = ()
    gpu_samples: tuple[GpuSample, ...] = ()
