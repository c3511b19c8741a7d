"""The run file: append-only facts in DuckDB. The only user of duckdb in the kit."""

from kit.store.database import parquet_files
from kit.store.parquet import export_parquet
from kit.store.reading import read_header, read_launches, read_run
from kit.store.writing import add_gpu_samples, add_launch, add_repetition, add_resumption, create_run, write_facts

__all__ = [
    "add_gpu_samples",
    "add_launch",
    "add_repetition",
    "add_resumption",
    "create_run",
    "export_parquet",
    "parquet_files",
    "read_header",
    "read_launches",
    "read_run",
    "write_facts",
]
