"""The facts arranged for counting: requests of timed repetitions as columns, and trace rounds joined to them.

Everything that is counted per request or per round is an array; a loop runs over launches, cells or arms at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kit import contract
from kit.records import Cell, Ints, Launch, LaunchStatus, Outcome, Phase, Repetition, RequestRecord, Role, RunFacts
from kit.spec import AdaptiveArm, Arm, BaselineArm, Eagle3Arm, Spec
from kit.stats import first_divergence

__all__ = ["Index", "JoinedRounds", "RequestTable", "candidates_of", "depth_of", "divergence", "spec_of", "topk_of"]

Bools = npt.NDArray[np.bool_]
NONE = -1  # a count that the server did not report


def spec_of(facts: RunFacts) -> Spec:
    """The expanded spec in the header of a run."""
    return Spec.model_validate_json(facts.header.spec_json)


def depth_of(arm: Arm) -> int:
    """Largest K that the arm may draft: 0 for a baseline, the largest candidate for an adaptive arm."""
    if isinstance(arm, BaselineArm):
        return 0
    steps = arm.candidates.values() if isinstance(arm, AdaptiveArm) and arm.candidates else ()
    return max(arm.num_steps, *(k for ladder in steps for k in ladder), 0)


def candidates_of(arm: AdaptiveArm, *, sglang: str) -> frozenset[int]:
    """Every K that the controller may choose: the arm's own, else those of that SGLang, else any up to the launch's."""
    if arm.candidates:
        return frozenset(k for steps in arm.candidates.values() for k in steps)
    known = contract.load(sglang).ladder if sglang in contract.versions() else range(arm.num_steps)
    return frozenset({*known, arm.num_steps})


def topk_of(arm: Arm) -> int:
    """Branching factor; 1 is a chain."""
    return arm.topk if isinstance(arm, Eagle3Arm) else 1


def divergence(reference: RequestRecord, other: RequestRecord) -> int | None:
    """Index of the first token in which two outputs differ; None when they are equal, which is quick to see."""
    if reference.output_ids.tobytes() == other.output_ids.tobytes():
        return None
    return first_divergence(reference.output_ids, b=other.output_ids)


@dataclass(frozen=True, slots=True, eq=False)
class RequestTable:
    """Requests of timed repetitions as columns; `NONE` (-1) marks a count that was not reported.

    `hist` has shape (requests, H): verify rounds by accepted drafts, zeros where nothing was reported. `prompt` and
    `prompt_class` are codes into `prompts` and `classes`.
    """

    records: tuple[RequestRecord, ...]
    cell: Ints
    launch: Ints
    ok: Bools
    completion: Ints
    verify_rounds: Ints
    correct_drafts: Ints
    retractions: Ints
    cached: Ints
    hist: Ints
    has_hist: Bools
    ids: Ints
    chunk_tokens: Ints
    prompt: Ints
    prompt_class: Ints
    prompts: tuple[str, ...]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRounds:
    """Live rounds (no ghosts) of timed requests, in processing order; `request` indexes the request table.

    `depth` is the K in force, 0 where drafting was off for the round, and -1 without speculation, as is `accepted`.
    """

    request: Ints
    iteration: Ints
    depth: Ints
    accepted: Ints
    tokens_before: Ints

    def where(self, keep: Bools) -> JoinedRounds:
        """The rounds at which `keep`, one entry a round, holds."""
        return JoinedRounds(*(getattr(self, name)[keep] for name in self.__slots__))


class Index:
    """Facts of one run with the look-ups that every analysis needs."""

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.spec = spec_of(facts)
        self.launches: Mapping[int, Launch] = {launch.launch: launch for launch in facts.launches}
        self.cells: Mapping[int, Cell] = {cell.cell: cell for cell in facts.cells}
        self.arms: Mapping[str, Arm] = {arm.name: arm for arm in self.spec.arms}

    @cached_property
    def timed(self) -> Mapping[int, tuple[Repetition, ...]]:
        """Timed repetitions of each cell; none of a launch that was begun again."""
        found: dict[int, list[Repetition]] = {cell: [] for cell in self.cells}
        for repetition in self.facts.repetitions:
            if repetition.phase is Phase.TIMED and self.cells[repetition.cell].launch not in self.begun_again:
                found[repetition.cell].append(repetition)
        return {cell: tuple(repetitions) for cell, repetitions in found.items()}

    @cached_property
    def begun_again(self) -> frozenset[int]:
        """Launches that were interrupted and whose place in the plan a later launch took."""
        last = {(launch.block, launch.position): launch.launch for launch in self.facts.launches}
        return frozenset(
            launch.launch
            for launch in self.facts.launches
            if launch.status is LaunchStatus.INTERRUPTED and last[launch.block, launch.position] != launch.launch
        )

    @cached_property
    def requests(self) -> RequestTable:
        """All requests of timed repetitions."""
        return _table(self, [rep for reps in self.timed.values() for rep in reps])

    @cached_property
    def outputs(self) -> RequestTable:
        """The answers that are compared token by token: those of passes made for it, else the timed ones."""
        own = [
            repetition
            for repetition in self.facts.repetitions
            if repetition.phase is Phase.OUTPUTS and self.cells[repetition.cell].launch not in self.begun_again
        ]
        return _table(self, own) if own else self.requests

    def arm_of(self, launch: int) -> Arm:
        """The arm that a launch served."""
        return self.arms[self.launches[launch].arm]

    def levels(
        self, arm: str, *, role: Role = Role.MEASURE, of: RequestTable | None = None
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Concurrencies of an arm, ascending, each with its cells in launch order.

        Only cells of which the table `of` has requests: the timed ones, unless another is named.
        """
        found: dict[int, list[int]] = {}
        known = set((self.requests if of is None else of).cell.tolist())
        for cell in self.facts.cells:
            launch = self.launches[cell.launch]
            if launch.arm == arm and launch.role is role and cell.cell in known:
                found.setdefault(cell.concurrency, []).append(cell.cell)
        for concurrency in sorted(found):
            yield concurrency, tuple(found[concurrency])

    def in_cells(self, cells: Sequence[int]) -> Bools:
        """Which requests of the table belong to `cells`."""
        return np.isin(self.requests.cell, cells)

    @cached_property
    def owners(self) -> Ints:
        """Position in the request table of every row of the trace, -1 for warm-up and health checks."""
        return _owners(self)

    @cached_property
    def rounds(self) -> JoinedRounds:
        """Live trace rounds of the requests in the table, matched by launch and rid."""
        return _joined(self)

    @cached_property
    def iteration_launch(self) -> Ints:
        """Launch of every iteration of the trace."""
        return self.facts.trace.iterations.launch

    @cached_property
    def iteration_depth(self) -> Ints:
        """K in force of every iteration, -1 without speculation."""
        tokens = self.facts.trace.iterations.draft_tokens
        depth = np.where(tokens < 0, NONE, tokens - 1)
        for launch in self.launches.values():
            arm = self.arm_of(launch.launch)
            if topk_of(arm) > 1:  # a tree verifies more tokens than it is deep
                depth[(self.iteration_launch == launch.launch) & (tokens >= 0)] = depth_of(arm)
        return depth


def _table(index: Index, repetitions: Iterable[Repetition]) -> RequestTable:
    cell_of = {repetition.repetition: repetition.cell for repetition in repetitions}
    records = tuple(request for request in index.facts.requests if request.repetition in cell_of)
    cell = _ints([cell_of[request.repetition] for request in records])
    launch_of = np.full(max(index.cells, default=0) + 1, NONE, np.int64)
    launch_of[list(index.cells)] = [cell.launch for cell in index.cells.values()]
    prompts, prompt = _codes([request.prompt for request in records])
    classes, prompt_class = _codes([request.prompt_class for request in records])
    return RequestTable(
        records=records,
        cell=cell,
        launch=launch_of[cell],
        ok=np.array([request.outcome is Outcome.OK for request in records], bool),
        completion=_counts([request.completion_tokens for request in records]),
        verify_rounds=_counts([request.verify_rounds for request in records]),
        correct_drafts=_counts([request.correct_drafts for request in records]),
        retractions=_counts([request.retractions for request in records]),
        cached=_counts([request.cached_tokens for request in records]),
        hist=_padded([request.histogram or () for request in records]),
        has_hist=np.array([request.histogram is not None for request in records], bool),
        ids=_ints([len(request.output_ids) for request in records]),
        chunk_tokens=_streamed(records),
        prompt=prompt,
        prompt_class=prompt_class,
        prompts=prompts,
        classes=classes,
    )


def _owners(index: Index) -> Ints:
    """The timed request behind every row of the trace, by launch and request id; -1 for strangers."""
    trace, table = index.facts.trace, index.requests
    code: dict[str, int] = {}
    same = _ints([code.setdefault(rid, at) for at, rid in enumerate(trace.rids)])  # launches may reuse a rid
    rid = _ints([code.get(record.rid, NONE) for record in table.records])
    launch = index.iteration_launch[trace.rounds.iteration]
    owner = np.full(len(trace.rounds), NONE, np.int64)
    for number in index.launches:
        mine = np.flatnonzero((table.launch == number) & (rid >= 0))
        request_of = np.full(len(trace.rids), NONE, np.int64)
        request_of[rid[mine]] = mine
        rows = launch == number
        owner[rows] = request_of[same[trace.rounds.rid[rows]]]
    return owner


def _joined(index: Index) -> JoinedRounds:
    trace, owner = index.facts.trace, index.owners
    live = np.flatnonzero((owner >= 0) & ~trace.rounds.ghost)
    live = live[_last_life(owner[live], trace.rounds.tokens_before[live])]
    iteration = trace.rounds.iteration[live]
    return JoinedRounds(
        request=owner[live],
        iteration=iteration,
        depth=index.iteration_depth[iteration],
        accepted=trace.rounds.accepted[live],
        tokens_before=trace.rounds.tokens_before[live],
    )


def _last_life(owner: Ints, tokens_before: Ints) -> Bools:
    """Rows of each request's last pass through the server, in the order given.

    A warm-up may have used the same request id; its rows end where the count of output tokens falls back.
    """
    order = np.argsort(owner, kind="stable")
    who, tokens = owner[order], tokens_before[order]
    restarts = np.cumsum((np.diff(who, prepend=NONE) == 0) & (np.diff(tokens, prepend=NONE) <= 0))
    ends = np.flatnonzero(np.diff(who, append=NONE))
    last = np.empty(len(owner), bool)
    last[order] = restarts == np.repeat(restarts[ends], np.diff(ends, prepend=NONE))
    return last


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _counts(values: Sequence[int | None]) -> Ints:
    return _ints([NONE if value is None else value for value in values])


def _codes(values: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    names = tuple(sorted(set(values)))
    code = {name: at for at, name in enumerate(names)}
    return names, _ints([code[value] for value in values])


def _streamed(records: Sequence[RequestRecord]) -> Ints:
    """Tokens that arrived in chunks, per request; NONE where no chunk was recorded."""
    lengths = _ints([len(record.chunk_tokens) for record in records])
    tokens = np.concatenate([np.empty(0, np.int64), *(record.chunk_tokens for record in records)])
    sums = np.bincount(np.repeat(np.arange(len(records)), lengths), tokens, minlength=len(records))
    return np.where(lengths > 0, sums.astype(np.int64), NONE)


def _padded(histograms: Sequence[Sequence[int]]) -> Ints:
    """Histograms of unequal length as one matrix."""
    lengths = _ints([len(h) for h in histograms])
    matrix = np.zeros((len(histograms), max(1, int(lengths.max(initial=0)))), np.int64)
    flat = _ints([count for h in histograms for count in h])
    row = np.repeat(np.arange(len(histograms)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    matrix[row, np.arange(len(flat)) - first] = flat
    return matrix
