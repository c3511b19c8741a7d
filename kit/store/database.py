"""Opening a run file: one connection a transaction, numbered migrations, a ledger of those applied."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from kit.errors import RunFileError

__all__ = ["SCHEMA_VERSION", "TABLES", "parquet_files", "quoted", "reading", "transaction"]

SCHEMA_VERSION = 4
"""Version of the run file. History: 1 = first form, 2 = resumptions, 3 = more of the trace, 4 = GPU samples."""

TABLES = {
    "run": "run_id",
    "launches": "launch",
    "cells": "cell",
    "repetitions": "repetition",
    "requests": 'repetition, "index"',
    "iterations": "launch, number",
    "rounds": 'launch, number, "row"',
    "switches": "launch, number",
    "trace_losses": "repetition",
    "resumptions": "first_launch",
    "gpu_samples": "repetition, at_ns, gpu",
}
"""Every table of facts, and the order of its rows in a Parquet file: the same facts give the same bytes."""

# Read by every DuckDB from 1.0 on; newer defaults are not.
_STORAGE = "v1.0.0"
_PATIENCE_S = 20.0
_RETRY_S = 0.02
_LEDGER = (
    "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied TIMESTAMP DEFAULT now())"
)


@contextmanager
def transaction(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A writing connection to `path` for one transaction: committed at the end, rolled back on an exception.

    The file is made and migrated when it is new. Raises RunFileError when it is held by another process, is no
    run file, or is newer than this kit.
    """
    with _connection(path, how=f"ATTACH '{quoted(path)}' AS run_file (STORAGE_VERSION '{_STORAGE}')") as con:
        con.begin()
        try:
            _migrate(con)
            yield con
        except BaseException:
            con.rollback()
            raise
        con.commit()


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A reading connection to `path`; an older run file is read from a migrated copy and stays as it is.

    `path` may also be a report's folder: its Parquet files are loaded into memory.
    """
    if not path.exists():
        raise RunFileError(f"{path}: no such run file; `speckit list` shows the ones there are")
    if path.is_dir():
        with _loaded(path) as con:
            yield con
        return
    with _connection(path, how=f"ATTACH '{quoted(path)}' AS run_file (READ_ONLY)") as con:
        current = _version(con) in (0, SCHEMA_VERSION)
        if current:
            yield con
    if not current:
        with TemporaryDirectory(prefix="speckit-") as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            with transaction(copy) as con:
                yield con


def parquet_files(folder: Path) -> tuple[Path, ...]:
    """The files of facts in a report's folder; empty when it holds none."""
    return tuple(path for name in TABLES if (path := folder / f"{name}.parquet").is_file())


@contextmanager
def _loaded(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The facts in a folder of Parquet files, as tables of today's form; what an older kit did not write is absent."""
    files = parquet_files(folder)
    if not (folder / "run.parquet").is_file():
        raise RunFileError(f"{folder}: holds no run.parquet; name a run file or the folder of a report that has one")
    with _connection(folder, how="ATTACH ':memory:' AS run_file") as con:
        _migrate(con)
        _refuse_part(con, folder)
        for file in files:
            _refuse_newer_parquet(con, file)
            con.execute(f"INSERT INTO {file.stem} BY NAME SELECT * FROM read_parquet('{quoted(file)}')")
        yield con


def _refuse_part(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """A folder that lost a file holds other facts than were measured. Older kits did not say which files there are."""
    for table in (_said(con, folder / "run.parquet", "speckit_tables") or "").split():
        if not (folder / f"{table}.parquet").is_file():
            raise RunFileError(f"{folder}: {table}.parquet is missing; restore the folder as it was written")


def _refuse_newer_parquet(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    _refuse_newer(int(_said(con, file, "speckit_run_file") or SCHEMA_VERSION), file)


def _said(con: duckdb.DuckDBPyConnection, file: Path, key: str) -> str | None:
    """What a Parquet file says of itself under `key`."""
    query = f"SELECT decode(value) FROM parquet_kv_metadata('{quoted(file)}') WHERE decode(key) = ?"
    found = con.execute(query, [key]).fetchone()
    return str(found[0]) if found else None


def quoted(path: Path) -> str:
    """A path inside an SQL string."""
    return str(path).replace("'", "''")


@contextmanager
def _connection(path: Path, *, how: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to `path`, attached as `how` says. A writer locks others out: it is opened late, closed early."""
    con = _engine().cursor()
    try:
        _attach(con, how)
        con.execute("USE run_file")
        _refuse_newer(_version(con), path)
        yield con
    except duckdb.Error as error:
        raise RunFileError(f"{path}: {_first_line(error)}; is it a run file that no other process holds?") from error
    finally:
        con.execute("USE memory; DETACH DATABASE IF EXISTS run_file")
        con.close()


def _attach(con: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Run `statement`, waiting for a process that holds the file: whoever looks at a run may not end it."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            con.execute(statement)
            return
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """The engine of this process, without a file: making one takes longer than storing a repetition."""
    engine = duckdb.connect()
    # Every reader orders what it reads, and tables are filled by all cores when their order is free.
    engine.execute("SET preserve_insertion_order = false")
    return engine


def _refuse_newer(version: int, path: Path) -> None:
    if version > SCHEMA_VERSION:
        raise RunFileError(
            f"{path}: run file version {version} is newer than this kit's {SCHEMA_VERSION}; update the kit"
        )


def _version(con: duckdb.DuckDBPyConnection) -> int:
    known = con.execute("SELECT 1 FROM duckdb_tables() WHERE database_name='run_file' AND table_name='migrations'")
    if known.fetchone() is None:
        return 0
    row = con.execute("SELECT max(version) FROM migrations").fetchone()
    return int(row[0] or 0) if row else 0


def _migrate(con: duckdb.DuckDBPyConnection) -> None:
    done = _version(con)
    if done == 0:
        con.execute(_LEDGER)
    for file in sorted(resources.files("kit.store").joinpath("migrations").iterdir(), key=lambda f: f.name):
        number = int(file.name[:4])
        if number > done:
            con.execute(file.read_text(encoding="utf-8"))
            con.execute("INSERT INTO migrations (version, name) VALUES (?, ?)", [number, file.name])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
