"""Appending facts to a run file. One repetition, its requests and its part of the trace are one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import orjson

from kit.errors import RunFileError
from kit.records import Cell, GpuSample, Launch, Repetition, RequestRecord, Resumption, RunFacts, RunHeader, Trace
from kit.store.database import transaction

Columns = dict[str, npt.NDArray[Any]]

__all__ = [
    "add_gpu_samples",
    "add_launch",
    "add_repetition",
    "add_resumption",
    "create_run",
    "insert",
    "write_facts",
]


def create_run(path: Path, header: RunHeader) -> None:
    """A new run file that holds `header`. Raises RunFileError when `path` exists or cannot be written."""
    if path.exists():
        raise RunFileError(f"{path}: exists already, and facts are never overwritten; choose another --out")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFileError(f"{path.parent}: cannot be made ({error.strerror}); choose another --out") from None
    with transaction(path) as con:
        insert(con, "run", [header])


def add_resumption(path: Path, resumption: Resumption) -> None:
    """Mark the seam between what an earlier sitting measured and what this one will."""
    with transaction(path) as con:
        insert(con, "resumptions", [resumption])


def add_launch(path: Path, launch: Launch) -> None:
    """Store `launch`, replacing what was stored of it when it started."""
    with transaction(path) as con:
        con.execute("DELETE FROM launches WHERE launch = ?", [launch.launch])
        insert(con, "launches", [launch])


def add_gpu_samples(path: Path, samples: Sequence[GpuSample]) -> None:
    """Store what the GPUs did during a repetition; without a GPU the file is not opened."""
    if samples:
        with transaction(path) as con:
            insert(con, "gpu_samples", samples)


def add_repetition(
    path: Path, cell: Cell, repetition: Repetition, requests: Sequence[RequestRecord], trace: Trace | None = None
) -> None:
    """Store a repetition with everything that belongs to it (its cell too, if it is the first), or nothing of it."""
    with transaction(path) as con:
        if con.execute("SELECT 1 FROM cells WHERE cell = ?", [cell.cell]).fetchone() is None:
            insert(con, "cells", [cell])
        insert(con, "repetitions", [repetition])
        insert(con, "requests", requests)
        if trace is not None:
            _insert_trace(con, repetition.repetition, trace)


def write_facts(path: Path, facts: RunFacts) -> None:
    """A whole run at once: the file appears complete or not at all. Raises RunFileError when `path` exists."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    if path.exists():
        raise RunFileError(f"{path}: exists already, and facts are never overwritten; choose another --out")
    try:
        create_run(partial, facts.header)
        with transaction(partial) as con:
            for table, rows in (
                ("launches", facts.launches),
                ("cells", facts.cells),
                ("repetitions", facts.repetitions),
                ("requests", facts.requests),
                ("resumptions", facts.resumptions),
                ("gpu_samples", facts.gpu_samples),
            ):
                insert(con, table, rows)
            _insert_trace(con, -1, facts.trace)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Any]) -> None:
    """Bulk insert of dataclasses whose fields are the columns of `table`; lists and JSON need no special case."""
    columns = con.execute("SELECT name, type FROM pragma_table_info(?)", [table]).fetchall()
    names = ", ".join(f'"{name}"' for name, _ in columns)
    shape = ", ".join(f"\"{name}\": '{kind}'" for name, kind in columns)
    with NamedTemporaryFile(suffix=".ndjson") as file:
        file.writelines(_line(row) for row in rows)
        file.flush()
        con.execute(
            f"INSERT INTO {table} SELECT {names} FROM read_json(?, format='newline_delimited', "
            f"maximum_object_size=268435456, columns={{{shape}}})",
            [file.name],
        )


def _line(row: Any) -> bytes:
    # numpy arrays and enums serialise as lists and values; orjson writes NaN as null, so none can hide
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS, default=dict) + b"\n"


def _insert_trace(con: duckdb.DuckDBPyConnection, repetition: int, trace: Trace) -> None:
    its, rounds = trace.iterations, trace.rounds
    if trace.lost:
        con.execute("INSERT INTO trace_losses VALUES (?, ?)", [repetition, trace.lost])
    _append(con, "iterations", _columns(its), select=f"{repetition} AS repetition, *")
    place = {
        "launch": its.launch[rounds.iteration],
        "number": its.number[rounds.iteration],
        "row": np.arange(len(rounds)),
    }
    names = {"code": np.arange(len(trace.rids)), "name": np.array(trace.rids, dtype=object)}
    _append(
        con,
        "rounds",
        _columns(rounds) | place,
        select="columns.* EXCLUDE (iteration) REPLACE (name AS rid)",
        names=names,
    )
    _append(con, "switches", _columns(trace.switches))


def _columns(table: Any) -> Columns:
    """A table of records by the names of its columns."""
    return {each.name: getattr(table, each.name) for each in fields(table)}


def _append(
    con: duckdb.DuckDBPyConnection, table: str, columns: Columns, *, select: str = "*", names: Columns | None = None
) -> None:
    """Append `columns` to a table by name; DuckDB reads arguments by their names. It cannot scan empty ones."""
    if any(map(len, columns.values())):
        joined = "" if names is None else "JOIN names ON columns.rid = names.code"
        con.execute(f"INSERT INTO {table} BY NAME SELECT {select} FROM columns {joined}")
