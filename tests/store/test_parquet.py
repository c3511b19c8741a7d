"""Facts as Parquet files: complete, the same bytes every time, and readable like a run file."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import duckdb
import numpy as np
import pytest

from kit.errors import RunFileError
from kit.records import GpuSample, Iterations, Resumption, Rounds, RunFacts
from kit.store import export_parquet, parquet_files, read_header, read_run, write_facts
from kit.store.database import SCHEMA_VERSION
from tests.builders import build_run, build_spec


@pytest.fixture(scope="module")
def facts() -> RunFacts:
    run = build_run(build_spec(arms=[{"kind": "baseline", "name": "baseline"}, {"kind": "adaptive", "name": "a"}]))
    return RunFacts(
        **{field.name: getattr(run, field.name) for field in fields(run)}
        | {
            "resumptions": (Resumption("2026-11-29T13:00:00+00:00", "0.1.0", 3, {"cpu": "one"}),),
            "gpu_samples": (GpuSample(0, 0, 5, sm_mhz=1980), GpuSample(0, 0, 9)),
        }
    )


@pytest.fixture(scope="module")
def exported(facts: RunFacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parquet")
    write_facts(folder / "run.duckdb", facts)
    export_parquet(folder / "run.duckdb", folder, launches=facts.launches)
    return folder


def test_every_fact_comes_back(facts: RunFacts, exported: Path) -> None:
    back, stored = read_run(exported), read_run(exported / "run.duckdb")
    for name in ("header", "launches", "cells", "repetitions", "resumptions", "gpu_samples"):
        assert getattr(back, name) == getattr(facts, name), name
    assert [one.chunk_ns.tolist() for one in back.requests] == [one.chunk_ns.tolist() for one in stored.requests]
    assert [one.histogram for one in back.requests] == [one.histogram for one in stored.requests]
    for kind, mine, theirs in (
        (Iterations, back.trace.iterations, stored.trace.iterations),
        (Rounds, back.trace.rounds, stored.trace.rounds),
    ):
        for column in (field.name for field in fields(kind)):
            assert np.array_equal(getattr(mine, column), getattr(theirs, column)), column
    assert read_header(exported) == facts.header


def test_the_same_facts_give_the_same_bytes_also_from_parquet(exported: Path, tmp_path: Path) -> None:
    again = export_parquet(exported, tmp_path, launches=read_run(exported).launches)
    assert [path.name for path in again] == [path.name for path in parquet_files(exported)]
    assert all(path.read_bytes() == (exported / path.name).read_bytes() for path in again)


def test_a_table_without_a_row_has_no_file(exported: Path) -> None:
    names = {path.stem for path in parquet_files(exported)}
    assert {"run", "requests", "rounds", "iterations", "gpu_samples"} <= names
    assert "trace_losses" not in names


def test_launches_may_be_given_in_another_form(facts: RunFacts, exported: Path, tmp_path: Path) -> None:
    export_parquet(exported / "run.duckdb", tmp_path, launches=facts.launches[:1])
    assert read_run(tmp_path).launches == facts.launches[:1]


def test_a_folder_without_facts_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"holds no run\.parquet; name a run file or the folder of a report"):
        read_run(tmp_path)


@pytest.mark.parametrize("lost", ["requests", "rounds", "cells"])
def test_a_folder_that_lost_a_file_is_not_another_run(lost: str, exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "part")
    (tmp_path / "part" / f"{lost}.parquet").unlink()
    with pytest.raises(RunFileError, match=f"{lost}.parquet is missing"):
        read_run(tmp_path / "part")


def test_facts_of_a_newer_kit_are_refused(exported: Path, tmp_path: Path) -> None:
    newer = f"KV_METADATA {{speckit_run_file: '{SCHEMA_VERSION + 1}'}}"
    duckdb.execute(f"COPY (FROM '{exported}/run.parquet') TO '{tmp_path}/run.parquet' (FORMAT parquet, {newer})")
    with pytest.raises(RunFileError, match=f"version {SCHEMA_VERSION + 1} is newer"):
        read_run(tmp_path)


def test_columns_that_an_older_kit_did_not_know_are_what_they_are_when_nobody_recorded_them(
    exported: Path, tmp_path: Path
) -> None:
    for path in parquet_files(exported):
        less = "EXCLUDE (launch_ns, waiting)" if path.stem == "iterations" else ""
        duckdb.execute(f"COPY (SELECT * {less} FROM '{path}') TO '{tmp_path}/{path.name}' (FORMAT parquet)")
    iterations = read_run(tmp_path).trace.iterations
    assert set(iterations.waiting.tolist()) == {-1}
    assert set(iterations.launch_ns.tolist()) == {-1}
