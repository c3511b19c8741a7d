"""Accounting that must hold: identities of client, server and trace, and the trace against every response.

len(output ids) = completion tokens                      client and server
sum h = verify rounds, sum j h_j = accepted drafts       server and server
proposed = rounds x proposed a round, ratios of counts   server and server (`kit.sglang.broken_counts`)
overshoot = 1 + retractions + sum (j+1) h_j - completion tokens, in [0, K]
live trace rows = verify rounds (one trailing row allowed), or completion tokens - 1 without speculation
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kit.analysis.index import Index, depth_of
from kit.analysis.output_results import Identities, IdentityFailure, ReasonCount, Reconciliation, TraceHealth
from kit.records import Ints, Launch
from kit.sglang import COUNT_IDENTITIES, broken_counts
from kit.spec import Arm, Eagle3Arm
from kit.stats import reconcile_rounds

__all__ = ["Accounts", "accounts"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Accounts:
    """`whole` requests have a histogram that adds up; `trusted` ones a trace that reproduces it.

    `overshoot` is per request (method 1.3), meaningful where a histogram is; `keep` marks the rounds of
    `Index.rounds` that may be used.
    """

    whole: Bools
    overshoot: Ints
    trusted: Bools
    keep: Bools
    identities: tuple[Identities, ...]
    reconciliation: tuple[Reconciliation, ...]
    traces: tuple[TraceHealth, ...]


def accounts(index: Index) -> Accounts:
    """The accounting of a whole run."""
    rows = np.bincount(index.rounds.request, minlength=len(index.requests))
    overshoot, depth = _overshoot(index), _depths(index)
    failures = dict(_violations(index, overshoot=overshoot, depth=depth, rows=rows))
    table = index.requests
    histogram = ("verify rounds", "accepted drafts", "overshoot", *COUNT_IDENTITIES)
    whole = table.ok & table.has_hist & ~np.any([failures[name] for name in histogram], axis=0)
    trusted = np.zeros(len(table), bool)
    keep = np.zeros(len(index.rounds.request), bool)
    reconciliation = tuple(
        _reconcile(index, launch, rows=rows, trusted=trusted, keep=keep) for launch in index.facts.launches
    )
    return Accounts(
        whole=whole,
        overshoot=overshoot,
        trusted=trusted,
        keep=keep,
        identities=tuple(_identities(index, failures)),
        reconciliation=reconciliation,
        traces=tuple(_health(index, launch) for launch in index.facts.launches),
    )


def _overshoot(index: Index) -> Ints:
    table = index.requests
    emitted = table.hist @ np.arange(1, table.hist.shape[1] + 1)
    excess: Ints = 1 + np.maximum(table.retractions, 0) + emitted - table.completion
    return excess


def _depths(index: Index) -> Ints:
    """Largest K of the arm behind each request."""
    depth = np.zeros(max(index.launches, default=0) + 1, np.int64)
    for number in index.launches:
        depth[number] = depth_of(index.arm_of(number))
    return depth[index.requests.launch]


def _violations(index: Index, *, overshoot: Ints, depth: Ints, rows: Ints) -> Iterator[tuple[str, Bools]]:
    """Each identity with the requests that break it; requests that failed break none."""
    table = index.requests
    ok, drafting = table.ok, table.ok & table.has_hist
    sizes = np.arange(table.hist.shape[1])
    expected = np.where(table.has_hist, table.verify_rounds, table.completion - 1)
    traced = np.isin(table.launch, np.unique(index.iteration_launch))
    yield "output ids", ok & (table.ids > 0) & (table.ids != table.completion)
    yield "streamed tokens", ok & (table.chunk_tokens >= 0) & (table.chunk_tokens != table.completion)
    yield "verify rounds", drafting & (table.hist.sum(axis=1) != table.verify_rounds)
    yield "accepted drafts", drafting & (table.correct_drafts >= 0) & (table.hist @ sizes != table.correct_drafts)
    yield "overshoot", drafting & ((overshoot < 0) | (overshoot > depth) | (_deepest(table.hist) > depth))
    yield "histogram", ok & (table.has_hist != ((depth > 0) & (table.completion > 1)))
    yield "trace rows", ok & traced & (rows != expected) & (rows != expected + table.has_hist)
    yield "request id", ok & _repeated(index)
    for name, broken in _contradictions(index).items():
        yield name, ok & broken


def _contradictions(index: Index) -> dict[str, Bools]:
    """Requests whose `meta_info` contradicts itself, by what it breaks."""
    table = index.requests
    found = {name: np.zeros(len(table), bool) for name in COUNT_IDENTITIES}
    for at, record in enumerate(table.records):
        proposed = _drafts_a_round(index.arm_of(int(table.launch[at])))
        for name in broken_counts(record.meta_info or {}, drafts_a_round=proposed):
            found[name][at] = True
    return found


def _drafts_a_round(arm: Arm) -> int | None:
    """What each round of a fixed depth proposes: K for a chain, every node but the root for a tree."""
    return arm.draft_tokens - 1 if isinstance(arm, Eagle3Arm) else None


def _deepest(hist: Ints) -> Ints:
    """Largest number of accepted drafts that occurred, 0 for none."""
    deepest: Ints = ((hist > 0) * np.arange(hist.shape[1])).max(axis=1, initial=0)
    return deepest


def _repeated(index: Index) -> Bools:
    """Requests of a launch that share their id with another one."""
    keys = [(launch, record.rid) for launch, record in zip(index.requests.launch, index.requests.records, strict=True)]
    seen: dict[tuple[int, str], int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
    return np.array([seen[key] > 1 for key in keys], bool)


def _identities(index: Index, failures: dict[str, Bools]) -> Iterator[Identities]:
    table = index.requests
    for cell in index.facts.cells:
        mine = table.cell == cell.cell
        broken = tuple(
            IdentityFailure(name, int((mine & bad).sum()), table.records[int(np.argmax(mine & bad))].rid)
            for name, bad in failures.items()
            if (mine & bad).any()
        )
        launch = index.launches[cell.launch]
        yield Identities(cell.cell, launch.launch, launch.arm, cell.concurrency, int((mine & table.ok).sum()), broken)


def _reconcile(index: Index, launch: Launch, *, rows: Ints, trusted: Bools, keep: Bools) -> Reconciliation:
    """Hold the trace of one launch against its responses; marks `trusted` requests and rounds to `keep`."""
    table = index.requests
    mine = np.flatnonzero((table.launch == launch.launch) & table.ok)
    position = np.full(len(table), -1, np.int64)
    position[mine] = np.arange(len(mine))
    at = np.flatnonzero(position[index.rounds.request] >= 0)
    request = position[index.rounds.request[at]]
    depth = depth_of(index.arm_of(launch.launch))
    if depth:
        hist = np.zeros((len(mine), max(depth + 1, table.hist.shape[1])), np.int64)
        hist[:, : table.hist.shape[1]] = table.hist[mine]
        outcome = reconcile_rounds(
            request,
            active=index.rounds.depth[at],
            accepted=index.rounds.accepted[at],
            hists=hist,
            completion_tokens=table.completion[mine],
        )
        exact, trailing, counted, kept = outcome.trusted, outcome.trailing, outcome.k0_counted, outcome.keep
    else:
        exact, trailing = rows[mine] == table.completion[mine] - 1, np.zeros(len(mine), bool)
        counted, kept = np.full(len(mine), -1, np.int64), exact[request]
    trusted[mine] = exact
    keep[at] = kept
    return Reconciliation(
        launch=launch.launch,
        arm=launch.arm,
        requests=len(mine),
        exact=int(exact.sum()),
        trailing_dropped=int(trailing.sum()),
        reasons=_reasons(index, mine[~exact], rows),
        k0_counted=bool(counted.max()) if (counted >= 0).any() else None,
        unmatched_rids=_unmatched(index, launch.launch),
    )


def _reasons(index: Index, untrusted: Ints, rows: Ints) -> tuple[ReasonCount, ...]:
    """Why requests are not reproduced: no row, too few, too many, or the right number with other contents."""
    table = index.requests
    expected = np.where(table.has_hist, table.verify_rounds, table.completion - 1)[untrusted]
    found = rows[untrusted]
    counts = {
        "no row in the trace": int((found == 0).sum()),
        "rows are missing from the trace": int(((found > 0) & (found < expected)).sum()),
        "the trace has more rows than rounds": int((found > expected).sum()),
        "rows and histogram disagree": int(((found > 0) & (found == expected)).sum()),
    }
    return tuple(ReasonCount(reason, count) for reason, count in counts.items() if count)


def _unmatched(index: Index, launch: int) -> int:
    """Request ids in the trace of a launch that no timed request bears: warm-up and health checks."""
    rounds = index.facts.trace.rounds
    mine = index.iteration_launch[rounds.iteration] == launch
    known = mine & (index.owners >= 0)
    return len(np.unique(rounds.rid[mine])) - len(np.unique(rounds.rid[known]))


def _health(index: Index, launch: Launch) -> TraceHealth:
    iterations = index.facts.trace.iterations
    mine = index.iteration_launch == launch.launch
    steps = np.diff(iterations.number[mine])
    return TraceHealth(
        launch=launch.launch,
        arm=launch.arm,
        iterations=int(mine.sum()),
        rounds=int(iterations.batch_size[mine].sum()),
        first_number=int(iterations.number[mine][0]) if mine.any() else None,
        gaps=int((steps[steps > 1] - 1).sum() + (steps < 1).sum()),
        reversals=int((np.diff(iterations.ready_ns[mine]) < 0).sum()),
    )
