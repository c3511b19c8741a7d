"""A trace kept as JSON lines, one a decode iteration, as columns.

Fields: `i` counter, `t` seconds of the server's monotonic clock when the result was processed, `nd` draft tokens in
force (null without speculation), `bs` rows, `r` = [rid, output tokens before, 1 for a ghost or 2 for a retracted one] a
row, `a` accepted drafts a row (null without speculation), `g` whether a CUDA graph ran. Some sources add `l` seconds at
launch, `k` depth, `n` = [running, waiting], `p` prompt tokens of prefills since the line before, `s` changes of depth,
each [from, to, slot, average]. Warm-up and health checks are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from kit.importers.jsonl import LARGEST, Line, read_lines
from kit.records import Ints, Iterations, Rounds, Switches, Trace
from kit.units import NS_PER_S

__all__ = ["joined", "read_jsonl_trace", "trace_of"]

Table = TypeVar("Table", Iterations, Rounds, Switches)

_UNKNOWN = (-1, -1)
_RETRACTED = 2


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
        launch_ns=_ints(_nanoseconds(line.values.get("l")) for line in lines),
        ready_ns=_ints(_nanoseconds(line.values["t"]) for line in lines),
        draft_tokens=_ints(_or_unknown(line.values["nd"]) for line in lines),
        depth=_ints(_or_unknown(line.values.get("k")) for line in lines),
        batch_size=_ints(sizes),
        running=_ints(line.values.get("n", _UNKNOWN)[0] for line in lines),
        waiting=_ints(line.values.get("n", _UNKNOWN)[1] for line in lines),
        prefill_tokens=_ints(_or_unknown(line.values.get("p")) for line in lines),
        cuda_graph=np.array([line.values["g"] for line in lines], bool),
    )
    rounds = Rounds(
        iteration=np.repeat(np.arange(len(lines)), sizes),
        rid=_ints(code[row[0]] for row in rows),
        tokens_before=_ints(row[1] for row in rows),
        accepted=_ints(a for line in lines for a in _accepted(line)),
        ghost=np.array([row[2] > 0 for row in rows], bool),
        retracted=np.array([row[2] == _RETRACTED for row in rows], bool),
    )
    return Trace(iterations, rounds, rids, _lost(number), _switches(lines, launch))


def _switches(lines: Sequence[Line], launch: int) -> Switches:
    found = [(line.values["i"], *change) for line in lines for change in line.values.get("s", ())]
    number, before, after, slot, average = np.array(found, np.float64).reshape(-1, 5).T
    return Switches(
        launch=np.full(len(found), launch, np.int64),
        number=number.astype(np.int64),
        before=before.astype(np.int64),
        after=after.astype(np.int64),
        by_result=np.ones(len(found), bool),
        slot=slot.astype(np.int64),
        average=average,
    )


def _nanoseconds(seconds: float | None) -> int:
    return -1 if seconds is None else round(seconds * NS_PER_S)


def _or_unknown(count: int | None) -> int:
    return -1 if count is None else count


def _checked(line: Line) -> Line:
    """`line` with every field of the promised type and as many rows as its batch size says."""
    line.count("i")
    if line.seconds_or_none("t") is None:
        line.refuse("t", "a time in seconds")
    size, rows = line.count("bs"), line.values.get("r")
    if not isinstance(rows, list) or len(rows) != size or not all(map(_is_row, rows)):
        line.refuse("r", f"{size} rows of [rid, tokens before, ghost]")
    _check_additions(line)
    drafts = line.values.get("nd")
    if drafts is None:
        if line.values.get("a") is not None:
            line.refuse("a", "null, although no draft tokens are in force")
    elif line.count("nd") < 1 or len(accepted := line.integers("a")) != size or not _possible(accepted, drafts):
        line.refuse("a", f"{size} counts from 0 to {drafts} - 1")
    if not isinstance(line.values.get("g"), bool):
        line.refuse("g", "true or false")
    return line


def _check_additions(line: Line) -> None:
    """What only some sources write."""
    line.seconds_or_none("l")
    for field in ("k", "p"):
        if line.values.get(field) is not None:
            line.count(field)
    if "n" in line.values and len(line.integers("n")) != len(_UNKNOWN):
        line.refuse("n", "[running, waiting]")
    changes = line.values.get("s", [])
    if not isinstance(changes, list) or not all(map(_is_change, changes)):
        line.refuse("s", "changes of [from, to, slot, average]")


def _is_change(change: object) -> bool:
    match change:
        case [int(before), int(after), int(slot), int() | float()]:
            return all(0 <= count <= LARGEST for count in (before, after, slot))
    return False


def _is_row(row: object) -> bool:
    match row:
        case [str(), int(before), 0 | 1 | 2]:
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
    shifted = [
        replace(trace.rounds, iteration=trace.rounds.iteration + row, rid=trace.rounds.rid + rid)
        for trace, row, rid in zip(traces, first_row, first_rid, strict=False)
    ]
    return Trace(
        iterations=_stacked([trace.iterations for trace in traces]),
        rounds=_stacked(shifted),
        rids=tuple(rid for trace in traces for rid in trace.rids),
        lost=sum(trace.lost for trace in traces),
        switches=_stacked([trace.switches for trace in traces]),
    )


def _stacked(tables: Sequence[Table]) -> Table:
    """Tables of the same columns, one below the other."""
    names = [each.name for each in fields(tables[0])]
    return type(tables[0])(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in names})
