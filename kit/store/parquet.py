"""The facts of a run as Parquet files in a report's folder: small, readable by anything, and enough to judge again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kit.records import Launch
from kit.store.database import SCHEMA_VERSION, TABLES, parquet_files, quoted, reading
from kit.store.writing import insert

__all__ = ["export_parquet"]

# zstd 15 takes a second a million rounds and is a quarter smaller than the default; more gains nothing.
_FORM = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 15, ROW_GROUP_SIZE 1000000"
# Deltas make columns of counters small, but hide from zstd what repeats in the lists and texts of requests (by 40 %).
_VERSION = {"iterations": "v2", "rounds": "v2"}


def export_parquet(source: Path, folder: Path, *, launches: Sequence[Launch]) -> tuple[Path, ...]:
    """Every table of the run file that has a row, as a Parquet file; `launches` stand in for those of the file.

    Raises RunFileError when the run file cannot be read or a file cannot be written.
    """
    with reading(source) as con:
        con.execute("CREATE OR REPLACE TEMP TABLE shown AS SELECT * FROM launches LIMIT 0")
        insert(con, "shown", launches)
        sources = {table: "shown" if table == "launches" else table for table in TABLES}
        held = [name for name, rows in sources.items() if con.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone()]
        # Each file says which others there are: facts without one of them would be other facts.
        said = f"KV_METADATA {{speckit_run_file: '{SCHEMA_VERSION}', speckit_tables: '{' '.join(held)}'}}"
        for table in held:
            query, target = f"SELECT * FROM {sources[table]} ORDER BY {TABLES[table]}", folder / f"{table}.parquet"
            form = f"{_FORM}, PARQUET_VERSION {_VERSION.get(table, 'v1')}, {said}"
            con.execute(f"COPY ({query}) TO '{quoted(target)}' ({form})")
    return parquet_files(folder)
