"""Everything a binary trace holds, as columns, and the part of it that is `kit.records.Trace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kit.errors import ImportFileError
from kit.importers.segments import GRAPH_BIT, Heads, Opening, Records, RowFlag
from kit.records import Bools, Ints, Iterations, Rounds, Switches, Trace

__all__ = ["Recording", "Rows", "Steps", "TraceHeader"]

_NO_U8, _NO_U16, _NO_U32 = 0xFF, 0xFFFF, 0xFFFFFFFF
_DISCARDED = RowFlag.FINISHED | RowFlag.RETRACTED


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """Who wrote the trace: the plugin, the SGLang it hooked, and the process.

    `reviewed_as` is the SGLang version whose reviewed sources were found, None when `override` let unknown
    ones pass. `modes` names the forward modes by their numbers. `monotonic_ns` and `wall_ns` were read together.
    """

    stream: str
    pid: int
    plugin_version: str
    plugin_sha256: str
    sglang: str | None
    reviewed_as: str | None
    override: bool
    targets: Mapping[str, str]
    ranks: Mapping[str, int | None]
    modes: Mapping[int, str]
    server_args: Mapping[str, Any]
    server_args_sha256: str
    monotonic_ns: int
    wall_ns: int

    @classmethod
    def read(cls, first: Opening, facts: Mapping[str, Any]) -> TraceHeader:
        """From a segment's first bytes and its header record; ImportFileError when a fact is missing."""
        try:
            return cls(
                stream=first.stream,
                pid=first.pid,
                plugin_version=facts["version"],
                plugin_sha256=facts["sha"],
                sglang=facts["sglang"],
                reviewed_as=facts["reviewed_as"],
                override=facts["override"],
                targets=facts["targets"],
                ranks=facts["ranks"],
                modes={int(code): name for code, name in facts["modes"].items()},
                server_args=facts["server_args"],
                server_args_sha256=facts["server_args_sha256"],
                monotonic_ns=first.monotonic_ns,
                wall_ns=first.wall_ns,
            )
        except KeyError as error:
            raise ImportFileError(f"the trace's header does not say {error}; was it written by speckit?") from None

    @property
    def decode(self) -> int:
        """The number of the forward mode DECODE; -1 if the header names none."""
        return next((code for code, name in self.modes.items() if name == "DECODE"), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Scheduler iterations of every mode, in processing order; columns are made when they are asked for.

    `heads` and `prefills` are the records as written, `rows` counts the rows of each iteration.
    """

    heads: Heads
    prefills: Heads
    rows: Ints

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def number(self) -> Ints:
        """SGLang's own counter of iterations."""
        return _signed(self.heads["number"])

    @property
    def mode(self) -> Ints:
        """Forward mode, by the numbers in `TraceHeader.modes`."""
        return _signed(self.heads["mode"] & ~np.uint8(GRAPH_BIT))

    @property
    def cuda_graph(self) -> Bools:
        """Whether a CUDA graph ran."""
        found: Bools = (self.heads["mode"] & np.uint8(GRAPH_BIT)) != 0
        return found

    @property
    def launch_ns(self) -> Ints:
        """Monotonic clock of the server when the batch was launched; -1 if unknown."""
        return _signed(self.heads["launch_ns"], missing=0)

    @property
    def ready_ns(self) -> Ints:
        """Monotonic clock of the server when the result was there."""
        return _signed(self.heads["ready_ns"])

    @property
    def draft_tokens(self) -> Ints:
        """Draft tokens in force at launch; -1 without speculation and for prefills."""
        return _signed(self.heads["draft_tokens"], missing=_NO_U16)

    @property
    def depth(self) -> Ints:
        """K in force at launch; -1 without speculation and for prefills."""
        return _signed(self.heads["depth"], missing=_NO_U8)

    @property
    def running(self) -> Ints:
        """Running requests at launch."""
        return _signed(self.heads["running"])

    @property
    def waiting(self) -> Ints:
        """Waiting requests at launch."""
        return _signed(self.heads["waiting"])

    @property
    def new_tokens(self) -> Ints:
        """Prompt tokens computed by a prefill; 0 for decodes."""
        return self._of_prefill("new_tokens")

    @property
    def cached_tokens(self) -> Ints:
        """Prompt tokens that a prefill found in the cache; 0 for decodes."""
        return self._of_prefill("cached_tokens")

    def _of_prefill(self, name: str) -> Ints:
        number, tokens = self.number, np.zeros(len(self), np.int64)
        at = np.searchsorted(number, self.prefills["number"])
        # A prefill's record follows its iteration's; where that one was lost, there is nothing to add the tokens to.
        here = np.append(number, -1)[at] == self.prefills["number"]
        tokens[at[here]] = self.prefills[name][here]
        return tokens


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of the steps, one a request.

    `step` indexes `Steps`, `rid` indexes `Recording.rids`; `accepted` is -1 where nothing was drafted.
    """

    step: Ints
    rid: Ints
    tokens_before: Ints
    accepted: Ints
    flags: npt.NDArray[np.uint8]

    def having(self, flag: RowFlag) -> Bools:
        """Whether a row has any of these flags."""
        found: Bools = (self.flags & np.uint8(flag)) != 0
        return found

    @classmethod
    def joined(cls, pieces: Sequence[Records]) -> Rows:
        """From records whose `rid` has been made an index into the names of all segments."""
        rows = np.concatenate([piece.rows for piece in pieces])
        return cls(
            step=np.repeat(np.arange(len(rows)), rows),
            rid=_signed(np.concatenate([piece.rid for piece in pieces])),
            tokens_before=_signed(np.concatenate([piece.tokens_before for piece in pieces])),
            accepted=_signed(np.concatenate([piece.accepted for piece in pieces]), missing=_NO_U8),
            flags=np.concatenate([piece.flags for piece in pieces]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A trace, or the part of it that came since the last look.

    `changes` are the changes of depth as written. `decode_number` numbers the steps so that decodes count up by one
    unless something is missing. `faults`
    states every damage; `lost` counts missing iterations, at least one a damage. `ended` tells a graceful end
    from a killed server.
    """

    header: TraceHeader
    steps: Steps
    rows: Rows
    rids: tuple[str, ...]
    changes: Heads
    events: tuple[Mapping[str, Any], ...]
    decode_number: Ints
    faults: tuple[str, ...]
    lost: int
    ended: bool

    def trace(self, *, launch: int) -> Trace:
        """The decode iterations; a finished or retracted request's row is a ghost, as SGLang discards both."""
        decode = self.steps.mode == self.header.decode
        at, kept = np.flatnonzero(decode), np.flatnonzero(np.repeat(decode, self.steps.rows))
        steps = replace(self.steps, heads=self.steps.heads[at], rows=self.steps.rows[at])
        flags = self.rows.flags.take(kept)
        return Trace(
            Iterations(
                launch=np.full(len(at), launch, np.int64),
                number=self.decode_number[at],
                launch_ns=steps.launch_ns,
                ready_ns=steps.ready_ns,
                draft_tokens=steps.draft_tokens,
                depth=steps.depth,
                batch_size=steps.rows,
                running=steps.running,
                waiting=steps.waiting,
                prefill_tokens=np.diff(np.cumsum(self.steps.new_tokens)[at], prepend=0),
                cuda_graph=steps.cuda_graph,
            ),
            Rounds(
                iteration=np.repeat(np.arange(len(at)), steps.rows),
                rid=self.rows.rid.take(kept),
                tokens_before=self.rows.tokens_before.take(kept),
                accepted=self.rows.accepted.take(kept),
                ghost=(flags & np.uint8(_DISCARDED)) != 0,
                retracted=(flags & np.uint8(RowFlag.RETRACTED)) != 0,
            ),
            self.rids,
            self.lost,
            self._switches(launch),
        )

    def _switches(self, launch: int) -> Switches:
        """The changes of depth, under the numbers that decode iterations have; -1 where that one is not recorded."""
        found, number = self.changes, self.steps.number
        at = np.searchsorted(number, found["number"])
        here = np.append(number, -1)[at] == found["number"]
        return Switches(
            launch=np.full(len(found), launch, np.int64),
            number=np.where(here, np.append(self.decode_number, -1)[at], -1),
            before=_signed(found["before"]),
            after=_signed(found["after"]),
            by_result=found["by_result"] != 0,
            slot=_signed(found["slot"], missing=_NO_U32),
            average=found["average"].astype(np.float64),
        )


def _signed(values: npt.NDArray[np.integer[Any]], *, missing: int | None = None) -> Ints:
    """As signed numbers, with -1 for the one that means none."""
    signed = values.astype(np.int64)
    if missing is not None:
        signed[signed == missing] = -1
    return signed
