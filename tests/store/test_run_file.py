"""A run file gives back exactly the facts that were put in, or says in one line why it cannot."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from kit.errors import RunFileError
from kit.records import (
    Cell,
    GpuSample,
    Iterations,
    Launch,
    LaunchStatus,
    Origin,
    Outcome,
    Phase,
    Repetition,
    RequestRecord,
    Role,
    Rounds,
    RunFacts,
    RunHeader,
    Switches,
    Trace,
)
from kit.store import add_gpu_samples, add_launch, add_repetition, create_run, read_header, read_run, write_facts

HEADER = RunHeader(
    run_id="20261129-120000-abc",
    origin=Origin.SIMULATED,
    spec_name="tiny",
    spec_json='{"name":"tiny"}',
    spec_hash="0" * 64,
    workload_hash="1" * 64,
    rules_version=1,
    kit_version="0.1.0",
    created_utc="2026-11-29T12:00:00Z",
    host={"cpu": "x", "nested": {"a": [1, 2]}},
    declarations=("PARTIAL: 1 of 3 blocks",),
)
LAUNCH = Launch(0, 0, 0, "k3", Role.MEASURE, ("python", "-m", "x"), "2026-11-29T12:00:01Z", LaunchStatus.COMPLETED)
CELL = Cell(0, 0, 8, 0)
REPETITION = Repetition(0, 0, Phase.TIMED, "2026-11-29T12:00:02Z", 10, 20, {"lag_ms": 0.5})
REQUEST = RequestRecord(
    repetition=0,
    index=0,
    rid="r0",
    prompt="code-1",
    prompt_class="code",
    max_new_tokens=5,
    sent_ns=11,
    ended_ns=19,
    outcome=Outcome.OK,
    status=200,
    first_token_ns=12,
    finish_reason="length",
    prompt_tokens=7,
    completion_tokens=5,
    cached_tokens=0,
    verify_rounds=2,
    correct_drafts=2,
    histogram=(1, 0, 1),
    retractions=0,
    meta_info={"id": "r0"},
    output_ids=np.array([1, 2, 3, 4, 5]),
    chunk_ns=np.array([12, 15, 19]),
    chunk_tokens=np.array([1, 1, 3]),
)
TRACE = Trace(
    Iterations(
        launch=np.array([0, 0]),
        number=np.array([4, 5]),
        launch_ns=np.array([50, 150]),
        ready_ns=np.array([100, 200]),
        draft_tokens=np.array([4, 4]),
        depth=np.array([3, 3]),
        batch_size=np.array([2, 1]),
        running=np.array([2, 2]),
        waiting=np.array([0, 1]),
        prefill_tokens=np.array([17, 0]),
        cuda_graph=np.array([True, False]),
    ),
    Rounds(
        iteration=np.array([0, 0, 1]),
        rid=np.array([1, 0, 1]),
        tokens_before=np.array([1, 1, 2]),
        accepted=np.array([0, 2, 1]),
        ghost=np.array([False, False, True]),
        retracted=np.array([False, False, True]),
    ),
    ("other", "r0"),
    lost=1,
    switches=Switches(
        launch=np.array([0]),
        number=np.array([5]),
        before=np.array([3]),
        after=np.array([1]),
        by_result=np.array([True]),
        slot=np.array([1]),
        average=np.array([0.25]),
    ),
)


def same(a: Any, b: Any) -> bool:
    """Field-wise equality that looks into numpy columns and nested records."""
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, tuple) and not isinstance(b, str):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


SAMPLES = (GpuSample(REPETITION.repetition, 0, 10, sm_mhz=1980, slowdown=4), GpuSample(REPETITION.repetition, 1, 11))


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.duckdb"
    create_run(path, HEADER)
    add_launch(path, LAUNCH)
    add_repetition(path, CELL, REPETITION, [REQUEST], TRACE)
    add_gpu_samples(path, SAMPLES)
    return path


def test_facts_come_back_as_they_went_in(run_file: Path) -> None:
    expected = RunFacts(HEADER, (LAUNCH,), (CELL,), (REPETITION,), (REQUEST,), TRACE, gpu_samples=SAMPLES)
    assert same(read_run(run_file), expected)


def test_a_whole_run_written_at_once_equals_one_appended_to(run_file: Path, tmp_path: Path) -> None:
    facts = read_run(run_file)
    write_facts(tmp_path / "copy.duckdb", facts)
    assert same(read_run(tmp_path / "copy.duckdb"), facts)


def test_the_end_of_a_launch_replaces_its_start(run_file: Path) -> None:
    ended = replace(LAUNCH, exit_code=-9, status=LaunchStatus.FAILED, failure="CUDA out of memory", log="line\n")
    add_launch(run_file, ended)
    assert read_run(run_file).launches == (ended,)


def test_a_failing_repetition_leaves_nothing_behind(run_file: Path) -> None:
    second = replace(REPETITION, repetition=1)
    with pytest.raises(RunFileError):
        add_repetition(run_file, CELL, second, [replace(REQUEST, repetition=1), replace(REQUEST, repetition=1)])
    assert [r.repetition for r in read_run(run_file).repetitions] == [0]


def test_facts_are_never_overwritten(run_file: Path) -> None:
    with pytest.raises(RunFileError, match="exists already"):
        create_run(run_file, HEADER)
    with pytest.raises(RunFileError, match="exists already"):
        write_facts(run_file, read_run(run_file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"none\.duckdb: no such run file"):
        read_header(tmp_path / "none.duckdb")


def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "text.duckdb"
    path.write_text("not a database\n" * 100)
    with pytest.raises(RunFileError) as caught:
        read_run(path)
    assert "\n" not in str(caught.value)


def test_a_newer_run_file_is_refused_by_its_version(run_file: Path) -> None:
    with duckdb.connect(str(run_file)) as con:
        con.execute("INSERT INTO migrations (version, name) VALUES (99, 'later')")
    with pytest.raises(RunFileError, match="version 99 is newer"):
        read_run(run_file)


def test_a_run_without_a_trace_has_an_empty_one(tmp_path: Path) -> None:
    create_run(tmp_path / "bare.duckdb", HEADER)
    trace = read_run(tmp_path / "bare.duckdb").trace
    assert (len(trace.iterations), len(trace.rounds), trace.rids) == (0, 0, ())


HOLD = (
    "import duckdb, sys, time; con = duckdb.connect(sys.argv[1], read_only=True);"
    "print('held', flush=True); time.sleep(0.6)"
)


def test_a_writer_waits_for_whoever_looks_at_the_file(run_file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run_file)], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        add_launch(run_file, replace(LAUNCH, launch=7))
    assert [launch.launch for launch in read_run(run_file).launches] == [0, 7]


def test_a_file_that_stays_held_is_named(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.store.database._PATIENCE_S", 0.05)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run_file)], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        with pytest.raises(RunFileError, match=r"run\.duckdb"):
            add_launch(run_file, replace(LAUNCH, launch=7))


def first_form(path: Path) -> None:
    """A run file as the first version of the kit wrote it: one launch, two iterations, one round."""
    script = resources.files("kit.store").joinpath("migrations/0001_initial.sql").read_text(encoding="utf-8")
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS old (STORAGE_VERSION 'v1.0.0'); USE old")
        con.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied TIMESTAMP)")
        con.execute("INSERT INTO migrations VALUES (1, '0001_initial.sql', now())")
        con.execute(script)
        con.execute("INSERT INTO run VALUES ('r','simulated','s','{}','h','w',1,'0.1.0','t','{}',NULL,NULL,[])")
        con.execute("INSERT INTO iterations VALUES (0, 0, 4, 100, 4, 1, true), (0, 0, 5, 200, -1, 1, false)")
        con.execute("INSERT INTO rounds VALUES (0, 5, 0, 'r0', 1, 2, false)")


def test_a_file_of_the_first_form_is_read_with_what_it_lacks_unknown_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    first_form(path)
    before = path.read_bytes()
    for _ in range(2):
        trace = read_run(path).trace
        assert trace.iterations.ready_ns.tolist() == [100, 200]
        assert trace.iterations.draft_tokens.tolist() == [4, -1]
        for unknown in ("launch_ns", "depth", "running", "waiting", "prefill_tokens"):
            assert getattr(trace.iterations, unknown).tolist() == [-1, -1]
        assert (trace.rounds.accepted.tolist(), trace.rounds.retracted.tolist()) == ([2], [False])
        assert len(trace.switches) == 0
        assert read_run(path).resumptions == ()
    assert path.read_bytes() == before


def test_a_file_of_the_first_form_is_migrated_when_something_is_added(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    first_form(path)
    add_launch(path, LAUNCH)
    later = replace(TRACE.iterations, number=np.array([6, 7]))
    add_repetition(path, CELL, REPETITION, [REQUEST], replace(TRACE, iterations=later))
    facts = read_run(path)
    assert [launch.launch for launch in facts.launches] == [0]
    assert facts.trace.iterations.depth.tolist() == [-1, -1, 3, 3]
    assert same(facts.trace.switches, TRACE.switches)


def test_an_average_that_nobody_knows_stays_unknown(tmp_path: Path) -> None:
    create_run(tmp_path / "run.duckdb", HEADER)
    unknown = replace(TRACE.switches, average=np.array([np.nan]), slot=np.array([-1]))
    add_repetition(tmp_path / "run.duckdb", CELL, REPETITION, [REQUEST], replace(TRACE, switches=unknown))
    found = read_run(tmp_path / "run.duckdb").trace.switches
    assert np.isnan(found.average).all() and found.slot.tolist() == [-1]
