"""What analysis says about outputs and their accounting: token equality, identities, trace against response."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kit.units import Tokens

__all__ = [
    "CellEvidence",
    "Divergence",
    "Identities",
    "IdentityFailure",
    "Losslessness",
    "Pairing",
    "ReasonCount",
    "Reconciliation",
    "TraceHealth",
]


class Pairing(StrEnum):
    """What two sets of outputs have in common."""

    ARM = "arm"  # an arm against its baseline at the same concurrency
    AA_TOKENS = "aa_tokens"  # the baseline against itself: another concurrency or another launch


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where one prompt's outputs part: the index of the first differing token (method 4.2).

    `margin` is the reference's top-2 log-probability margin there and `rank` the other token's rank; both None
    where nobody recorded them. `prefill_margin` is that margin when the common prefix is prefilled. `past_the_end`
    marks an output that says all that the reference says, its end included, and goes on to the length limit: a server
    that looks at the limit before the end of sequence does that when one round reaches both.
    """

    prompt: str
    prompt_class: str
    index: Tokens
    reference_tokens: Tokens
    other_tokens: Tokens
    margin: float | None = None
    rank: int | None = None
    prefill_margin: float | None = None
    past_the_end: bool = False


@dataclass(frozen=True, slots=True)
class Losslessness:
    """Token-exact comparison of one set of outputs with a reference set, prompt by prompt, blocks pooled.

    `diverged_upper` is the one-sided 95 % Clopper-Pearson limit of the share that differs. `prefill_spread` is how far
    decode and prefill of the same `asked_again` positions differ on the reference's server, None where nobody asked.
    """

    pairing: Pairing
    arm: str
    concurrency: int
    launches: tuple[int, ...]
    reference_arm: str
    reference_concurrency: int
    reference_launches: tuple[int, ...]
    prompts: int
    equal_ids: int
    equal_lengths: int
    diverged_upper: float | None
    divergences: tuple[Divergence, ...]
    prefill_spread: float | None = None
    asked_again: int = 0


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """A reason and how many requests it holds for."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How many finished requests of a launch the trace reproduces exactly, and why the others fail (method 1.4)."""

    launch: int
    arm: str
    requests: int
    exact: int
    trailing_dropped: int
    reasons: tuple[ReasonCount, ...]
    k0_counted: bool | None
    unmatched_rids: int


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """What server and trace say about the timed requests of one cell, for the checks.

    Counts are None where the server reported none. `drafting` is the number of requests that count a verify round,
    of the `continued` ones that had more than the token of prefill. `drafted_rounds` are the verify rounds with K above
    0, None without a trace. Iterations are those that served a timed request.
    """

    cell: int
    cached_tokens: int | None
    prompt_tokens: int | None
    retractions: int | None
    verify_rounds: int
    accepted_drafts: int
    drafted_rounds: int | None
    drafting: int
    continued: int
    iterations: int
    eager_iterations: int
    largest_batch: int


@dataclass(frozen=True, slots=True)
class TraceHealth:
    """Whether the trace of a launch is whole. `gaps` counts ids that are missing, `reversals` clocks that ran back."""

    launch: int
    arm: str
    iterations: int
    rounds: int
    first_number: int | None
    gaps: int
    reversals: int


@dataclass(frozen=True, slots=True)
class IdentityFailure:
    """An equality that must hold and does not, for `count` requests or records; `example` names one."""

    identity: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Identities:
    """The accounting of one cell: how many requests were checked and what did not add up."""

    cell: int
    launch: int
    arm: str
    concurrency: int
    checked: int
    failures: tuple[IdentityFailure, ...]
