"""A trace kept as JSON lines, one a decode iteration, as columns.

Fields: `i` counter, `t` seconds of the server's monotonic clock when the result was processed, `nd` draft tokens in
force (null without speculation), `bs` rows, `r` = [rid, output tokens before, 1 for a ghost] a row, `a` accepted
drafts a row (null without speculation), `g` whether a CUDA graph ran. Warm-up and health checks are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kit.importers.jsonl import LARGEST, Line, read_lines
from kit.records import Ints, Iterations, Rounds, Trace
from kit.units import NS_PER_S

__all__ = ["joined", "read_jsonl_trace", "trace_of"]

_ITERATION_COLUMNS = ("launch", "number", "ready_ns", "draft_tokens", "batch_size", "cuda_graph")
_ROUND_COLUMNS = ("iteration", "rid", "tokens_before", "accepted", "ghost")


def read_jsonl_trace(path: Path, *, launch: int) -> Trace:
    """The trace of one launch. Gaps in the counter are counted in `lost`; a row that cannot be is refused."""
    return trace_of(read_lines(path), launch=launch)


def trace_of(source: Iterable[Line], *, launch: int) -> Trace:
    """The same from lines that have been read."""
    lines = [_checked(line) for line in source]
    sizes = [line.values["bs"] for line in lines]
    rows = [row for line in lines for row in line.values["r"]]
    rids = tuple(dict.fromkeys(row[0] for row in rows))
    code = {rid: at for at, rid in enumerate(rids)}
    number = _ints(line.values["i"] for line in lines)
    iterations = Iterations(
        launch=np.full(len(lines), launch, np.int64),
        number=number,
        ready_ns=_ints(round(line.values["t"] * NS_PER_S) for line in lines),
        draft_tokens=_ints(-1 if line.values["nd"] is None else line.values["nd"] for line in lines),
        batch_size=_ints(sizes),
        cuda_graph=np.array([line.values["g"] for line in lines], bool),
    )
    rounds = Rounds(
        iteration=np.repeat(np.arange(len(lines)), sizes),
        rid=_ints(code[row[0]] for row in rows),
        tokens_before=_ints(row[1] for row in rows),
        accepted=_ints(a for line in lines for a in _accepted(line)),
        ghost=np.array([row[2] == 1 for row in rows], bool),
    )
    return Trace(iterations, rounds, rids, lost=_lost(number))


def _checked(line: Line) -> Line:
    """`line` with every field of the promised type and as many rows as its batch size says."""
    line.count("i")
    if line.seconds_or_none("t") is None:
        line.refuse("t", "a time in seconds")
    size, rows = line.count("bs"), line.values.get("r")
    if not isinstance(rows, list) or len(rows) != size or not all(map(_is_row, rows)):
        line.refuse("r", f"{size} rows of [rid, tokens before, ghost]")
    drafts = line.values.get("nd")
    if drafts is None:
        if line.values.get("a") is not None:
            line.refuse("a", "null, although no draft tokens are in force")
    elif line.count("nd") < 1 or len(accepted := line.integers("a")) != size or not _possible(accepted, drafts):
        line.refuse("a", f"{size} counts from 0 to {drafts} - 1")
    if not isinstance(line.values.get("g"), bool):
        line.refuse("g", "true or false")
    return line


def _is_row(row: object) -> bool:
    match row:
        case [str(), int(before), 0 | 1]:
            return type(before) is int and 0 <= before <= LARGEST
    return False


def _possible(accepted: Sequence[int], draft_tokens: int) -> bool:
    return all(0 <= count < draft_tokens for count in accepted)


def _accepted(line: Line) -> Sequence[int]:
    values = line.values["a"]
    return values if values is not None else [-1] * line.values["bs"]


def _lost(number: Ints) -> int:
    """Records missing between the first and the last; a counter that runs backwards is a loss of at least one."""
    steps = np.diff(number)
    return int((steps[steps > 1] - 1).sum() + (steps < 1).sum())


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of several launches as one: row and request indices are shifted, nothing is merged."""
    first_row = np.cumsum([0, *(len(trace.iterations) for trace in traces)])
    first_rid = np.cumsum([0, *(len(trace.rids) for trace in traces)])
    rounds = {name: [getattr(trace.rounds, name) for trace in traces] for name in _ROUND_COLUMNS}
    rounds["iteration"] = [column + at for column, at in zip(rounds["iteration"], first_row, strict=False)]
    rounds["rid"] = [column + at for column, at in zip(rounds["rid"], first_rid, strict=False)]
    return Trace(
        iterations=Iterations(
            **{name: np.concatenate([getattr(t.iterations, name) for t in traces]) for name in _ITERATION_COLUMNS}
        ),
        rounds=Rounds(**{name: np.concatenate(columns) for name, columns in rounds.items()}),
        rids=tuple(rid for trace in traces for rid in trace.rids),
        lost=sum(trace.lost for trace in traces),
    )
