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

__all__ = ["SCHEMA_VERSION", "reading", "transaction"]

SCHEMA_VERSION = 4
"""Version of the run file. History: 1 = first form, 2 = resumptions, 3 = more of the trace, 4 = GPU samples."""

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
    with _connection(path, read_only=False) as con:
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
    """A reading connection to `path`; an older run file is read from a migrated copy and stays as it is."""
    if not path.exists():
        raise RunFileError(f"{path}: no such run file; `speckit list` shows the ones there are")
    with _connection(path, read_only=True) as con:
        current = _version(con) in (0, SCHEMA_VERSION)
        if current:
            yield con
    if not current:
        with TemporaryDirectory(prefix="speckit-") as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            with transaction(copy) as con:
                yield con


@contextmanager
def _connection(path: Path, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to `path`. A writer locks every other process out, so it is opened late and closed early."""
    con = _engine().cursor()
    try:
        mode = "READ_ONLY" if read_only else f"STORAGE_VERSION '{_STORAGE}'"
        quoted = str(path).replace("'", "''")
        _attach(con, f"ATTACH '{quoted}' AS run_file ({mode})")
        con.execute("USE run_file")
        _refuse_newer(con, path)
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
    return duckdb.connect()


def _refuse_newer(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    version = _version(con)
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
