"""Doubts as values: why a run, an arm, a launch or a cell should not be believed, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CellJudgement", "CellState", "Code", "Doubt", "Scope", "Severity"]


class Severity(StrEnum):
    """What a doubt does to what it points at."""

    INVALID = "invalid"  # its numbers support no word
    UNKNOWN = "unknown"  # evidence is absent; shown, supports no word
    DOUBT = "doubt"  # shown beside the numbers


class Scope(StrEnum):
    """What a doubt points at."""

    RUN = "run"
    ARM = "arm"
    LAUNCH = "launch"
    CELL = "cell"


class Code(StrEnum):
    """Every reason the kit can name."""

    FAILED_REQUESTS = "failed_requests"
    CLIENT_LIMITED = "client_limited"
    CLIENT_UNKNOWN = "client_unknown"
    WRONG_SERVER = "wrong_server"
    SERVER_UNSEEN = "server_unseen"
    UNFAIR_FLAG = "unfair_flag"
    INPUTS_DIFFER = "inputs_differ"
    RETRACTION = "retraction"
    QUEUEING = "queueing"
    QUEUEING_UNKNOWN = "queueing_unknown"
    CACHED_TOKENS = "cached_tokens"
    EAGER_DECODE = "eager_decode"
    DEAD_DRAFT = "dead_draft"
    ADAPTIVE_NOT_IN_FORCE = "adaptive_not_in_force"
    ADAPTIVE_UNSTABLE = "adaptive_unstable"
    TRACE_MISSING = "trace_missing"
    TRACE_LOSS = "trace_loss"
    TRACE_UNTRUSTED = "trace_untrusted"
    TRACE_UNREVIEWED = "trace_unreviewed"
    IDENTITY_FAILED = "identity_failed"
    GPU_SLOWED = "gpu_slowed"
    GPU_SHARED = "gpu_shared"
    GPU_CLOCK_DIFFERS = "gpu_clock_differs"
    DRIFT = "drift"
    NO_STEADY_WINDOW = "no_steady_window"
    NO_CLIENT_TIMES = "no_client_times"
    NO_CHUNK_TIMES = "no_chunk_times"
    NAN = "nan"
    LATE_STANDIN = "late_standin"
    FEW_WAVES = "few_waves"
    LOOPING_OUTPUTS = "looping_outputs"
    SHORT_OUTPUTS = "short_outputs"
    EMPTY_TEXTS = "empty_texts"
    LAUNCH_FAILED = "launch_failed"
    LAUNCH_VOID = "launch_void"
    ONE_LAUNCH = "one_launch"
    FEW_BLOCKS = "few_blocks"
    DECLARED = "declared"
    PROVENANCE_UNKNOWN = "provenance_unknown"
    NOT_PRE_REGISTERED = "not_pre_registered"
    HASH_MISMATCH = "hash_mismatch"
    CHECK_CRASHED = "check_crashed"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason. Exactly the references that `scope` needs are set: arm, launch, or cell with both."""

    code: Code
    severity: Severity
    scope: Scope
    message: str
    hint: str
    arm: str | None = None
    launch: int | None = None
    cell: int | None = None
    concurrency: int | None = None


class CellState(StrEnum):
    """Decided before a cell has a number (architecture of judging: facts, doubts, numbers)."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CellJudgement:
    """State of one cell; `causes` are the doubts that made it so, empty when it is valid."""

    cell: int
    launch: int
    arm: str
    concurrency: int
    state: CellState
    causes: tuple[Code, ...]
