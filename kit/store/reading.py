"""Reading a run file back into records."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np

from kit.errors import RunFileError
from kit.records import (
    Cell,
    GpuSample,
    Ints,
    Iterations,
    Launch,
    LaunchStatus,
    Origin,
    Outcome,
    Phase,
    Repetition,
    RequestRecord,
    Resumption,
    Role,
    Rounds,
    RunFacts,
    RunHeader,
    Switches,
    Trace,
)
from kit.store.database import reading

Row = TypeVar("Row")

__all__ = ["read_header", "read_launches", "read_run"]


def _ints(column: Any) -> Ints:
    return np.asarray(column, np.int64)


# NULL stands for an unknown average, as numpy's NaN is written.
_SWITCHES = "SELECT * REPLACE (coalesce(average, 'NaN') AS average) FROM switches ORDER BY launch, number"

_DECODE: dict[str, Callable[[Any], Any]] = {
    "origin": Origin,
    "role": Role,
    "phase": Phase,
    "outcome": Outcome,
    "host": json.loads,
    "client": json.loads,
    "server_info": json.loads,
    "meta_info": json.loads,
    "command": tuple,
    "declarations": tuple,
    "histogram": tuple,
    **dict.fromkeys(("output_ids", "chunk_ns", "chunk_tokens"), _ints),
}


def read_run(path: Path) -> RunFacts:
    """Every fact in `path`. Raises RunFileError when it is missing, broken, held, or newer than this kit."""
    with reading(path) as con:
        return RunFacts(
            header=_header(con, path),
            launches=_launches(con),
            cells=tuple(_rows(con, Cell, "cells ORDER BY cell")),
            repetitions=tuple(_rows(con, Repetition, "repetitions ORDER BY repetition")),
            requests=tuple(_rows(con, RequestRecord, 'requests ORDER BY repetition, "index"')),
            trace=_trace(con),
            resumptions=tuple(_rows(con, Resumption, "resumptions ORDER BY first_launch")),
            gpu_samples=tuple(_rows(con, GpuSample, "gpu_samples ORDER BY repetition, at_ns, gpu")),
        )


def read_header(path: Path) -> RunHeader:
    """Only the header of `path`."""
    with reading(path) as con:
        return _header(con, path)


def read_launches(path: Path) -> tuple[Launch, ...]:
    """Only the launches of `path`, in order."""
    with reading(path) as con:
        return _launches(con)


def _launches(con: duckdb.DuckDBPyConnection) -> tuple[Launch, ...]:
    return tuple(_rows(con, Launch, "launches ORDER BY launch", {"status": LaunchStatus}))


def _header(con: duckdb.DuckDBPyConnection, path: Path) -> RunHeader:
    header = next(iter(_rows(con, RunHeader, "run")), None)
    if header is None:
        raise RunFileError(f"{path}: holds no run; the kit was stopped before it wrote one")
    return header


def _rows(
    con: duckdb.DuckDBPyConnection, kind: type[Row], source: str, extra: dict[str, Callable[[Any], Any]] | None = None
) -> list[Row]:
    """The rows of `source` as `kind`, whose field names are the columns."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    decode = [({**_DECODE, **(extra or {})}).get(name) for name in names]
    table = con.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {source}")
    return [
        kind(
            *(
                value if convert is None or value is None else convert(value)
                for value, convert in zip(row, decode, strict=True)
            )
        )
        for row in table.fetchall()
    ]


def _quoted(name: str) -> str:
    return f'"{name}"'


def _trace(con: duckdb.DuckDBPyConnection) -> Trace:
    its = con.execute("SELECT * EXCLUDE (repetition) FROM iterations ORDER BY launch, number").fetchnumpy()
    iterations = Iterations(**_columns(its, flags=("cuda_graph",)))
    rows = con.execute(
        "SELECT launch, number, dense_rank() OVER (ORDER BY rid) - 1 AS rid, tokens_before, accepted, ghost, retracted "
        'FROM rounds ORDER BY launch, number, "row"'
    ).fetchnumpy()
    at = _positions(iterations, _ints(rows.pop("launch")), _ints(rows.pop("number")))
    rids = con.execute("SELECT DISTINCT rid FROM rounds ORDER BY rid").fetchall()
    lost = con.execute("SELECT coalesce(sum(lost), 0) FROM trace_losses").fetchone()
    changes = con.execute(_SWITCHES).fetchnumpy()
    average = np.asarray(changes.pop("average"), np.float64)
    return Trace(
        iterations,
        Rounds(iteration=at, **_columns(rows, flags=("ghost", "retracted"))),
        tuple(row[0] for row in rids),
        int(lost[0]) if lost else 0,
        Switches(average=average, **_columns(changes, flags=("by_result",))),
    )


def _columns(table: Mapping[str, Any], *, flags: Collection[str]) -> dict[str, Any]:
    """Columns as fetched, with the types that records have."""
    return {name: np.asarray(values, np.bool_ if name in flags else np.int64) for name, values in table.items()}


def _positions(iterations: Iterations, launch: Ints, number: Ints) -> Ints:
    """Index of each (launch, number) in `iterations`, which are sorted by both."""
    keys = iterations.launch << 40 | iterations.number
    return np.searchsorted(keys, launch << 40 | number)
