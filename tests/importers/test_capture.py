"""A recorded capture becomes facts whole, with its shortcomings declared, or is refused with file and line."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import ImportFileError
from kit.importers.capture import import_capture
from kit.records import LaunchStatus, Origin, Outcome, Phase, RunFacts
from kit.spec import AdaptiveArm, BaselineArm, Eagle3Arm, Spec
from tests.captures import CAPTURES, CPU, H200

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A copy of the small capture that a test may damage."""
    return shutil.copytree(CAPTURES / CPU, tmp_path / CPU)


def rewrite(path: Path, edit: Edit, *, line: int = 1) -> None:
    """Change one line (from 1) of an xz-compressed JSON-lines file."""
    rows = lzma.decompress(path.read_bytes()).decode().splitlines()
    row = json.loads(rows[line - 1])
    edit(row)
    rows[line - 1] = json.dumps(row)
    path.write_bytes(lzma.compress("\n".join(rows).encode() + b"\n", preset=0))


def test_launches_stand_in_the_order_of_their_logs(h200: RunFacts) -> None:
    assert [launch.arm for launch in h200.launches] == ["eagle3_k7", "baseline", "adaptive", "eagle3_k3"]
    assert {launch.status for launch in h200.launches} == {LaunchStatus.COMPLETED}
    assert [launch.position for launch in h200.launches] == [0, 1, 2, 3]


def test_every_cell_holds_one_timed_repetition_with_all_its_requests(h200: RunFacts) -> None:
    sizes = np.bincount([request.repetition for request in h200.requests])
    assert sizes.tolist() == [24, 96, 192] * 4
    assert {repetition.phase for repetition in h200.repetitions} == {Phase.TIMED}
    assert {request.outcome for request in h200.requests} == {Outcome.OK}


def test_the_spec_is_read_back_from_the_servers(h200: RunFacts) -> None:
    spec = Spec.model_validate_json(h200.header.spec_json)
    assert [type(arm) for arm in spec.arms] == [BaselineArm, Eagle3Arm, Eagle3Arm, AdaptiveArm]
    assert spec.models.target.dtype == "bfloat16"  # the server says "auto"; its log knows
    assert (spec.engine.sglang, spec.server.attention_backend) == ("0.5.15.post1", "triton")
    assert spec.workload.max_output_tokens == 128
    assert not spec.workload.ignore_eos


def test_what_the_capture_breaks_is_declared(h200: RunFacts) -> None:
    declared = " ".join(h200.header.declarations)
    assert h200.header.origin is Origin.IMPORTED
    for phrase in ("One launch an arm", "Not pre-registered", "No chunk times", "cuda_graph_config.decode.bs"):
        assert phrase in declared
    assert "max_total_num_tokens: 3118031 on adaptive, eagle3_k3, eagle3_k7, 3227882 on baseline" in declared
    assert "No client times" not in declared


def test_a_capture_without_client_times_says_so_and_has_no_duration(cpu: RunFacts) -> None:
    declared = " ".join(cpu.header.declarations)
    assert "No client times" in declared
    assert "No server_info for baseline, eagle3_k3" in declared
    assert "baseline and eagle3_k3 were up at the same time" in declared
    assert all(repetition.started_ns == repetition.ended_ns for repetition in cpu.repetitions)


def test_warm_up_and_health_checks_stay_in_the_trace(h200: RunFacts) -> None:
    assert sum(rid.startswith("HEALTH_CHECK") for rid in h200.trace.rids) == 4
    assert len(h200.trace.rids) == 4 * 314
    assert h200.trace.lost == 0
    assert np.bincount(h200.trace.iterations.launch).tolist() == [2951, 4596, 3312, 2967]


def test_importing_twice_gives_the_same_identity(h200: RunFacts) -> None:
    again = import_capture(CAPTURES / H200)
    assert (again.header.run_id, again.header.spec_hash) == (h200.header.run_id, h200.header.spec_hash)


@pytest.mark.parametrize(
    "name", ["requests.jsonl.xz", "trace_3.jsonl.xz", "server_0.log.xz", "server_info_adaptive.json.xz"]
)
def test_a_missing_file_is_named(capture: Path, name: str) -> None:
    (capture / name).unlink()
    with pytest.raises(ImportFileError, match=rf"{name.split('.')[0].removesuffix('_adaptive')}\w*\.\S*: missing"):
        import_capture(capture)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="not a folder"):
        import_capture(tmp_path / "nothing")


def test_a_truncated_file_is_refused(capture: Path) -> None:
    path = capture / "trace_0.jsonl.xz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ImportFileError, match=r"trace_0\.jsonl\.xz: damaged"):
        import_capture(capture)


def test_a_log_without_stamps_is_refused(capture: Path) -> None:
    (capture / "server_0.log.xz").write_bytes(lzma.compress(b"nothing dated\n"))
    with pytest.raises(ImportFileError, match=r"server_0\.log\.xz: no line begins with"):
        import_capture(capture)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda row: row.update(c="8"), r'requests\.jsonl\.xz:3: c: "8" is not a count'),
        (lambda row: row.update(c=0), r":3: c: 0 is not a concurrency from 1"),
        (lambda row: row.pop("cat"), r":3: cat: missing is not text"),
        (lambda row: row.update(v="fast"), r':3: v: "fast" is not an arm'),
        (lambda row: row.update(v="03"), r':3: v: "03" is not an arm'),
        (lambda row: row.update(ids=[1, 2.5]), r":3: ids: .* is not a list of whole numbers"),
        (lambda row: row.update(ids=[2**70]), r":3: ids: .* is not a list of whole numbers"),
        (lambda row: row.update(t0=1.0), r":3: t1: missing is not an end after t0 1\.0"),
        (lambda row: row.update(t0=2.0, t1=1.0), r":3: t1: 1\.0 is not an end after t0 2\.0"),
        (lambda row: row.update(t0=-0.5, t1=1.0), r":3: t0: -0\.5 is not a time in seconds"),
        (lambda row: row.update(t0=0.0, t1=1e30), r":3: t1: 1e\+?30 is not a time in seconds"),
        (lambda row: row.update(t0=0.0, t1=float("nan")), r":3: .*NaN"),
        (lambda row: row.update(t0=0.0, t1=float("inf")), r":3: .*Infinity"),
        (lambda row: row.update(i=0), r":3: i: 0 is not new"),
        (lambda row: row.update(meta=None), r":3: meta: null is not an object"),
        (lambda row: row["meta"].pop("completion_tokens"), r":3: meta: .*completion_tokens is missing"),
        (lambda row: row["meta"].update(finish_reason="stop"), r":3: meta: .*finish_reason"),
        (lambda row: row["meta"].update(completion_tokens=2**80), r":3: meta: .* no server can reach"),
    ],
)
def test_a_broken_request_is_refused_with_line_and_field(capture: Path, edit: Edit, complaint: str) -> None:
    rewrite(capture / "requests.jsonl.xz", edit, line=3)
    with pytest.raises(ImportFileError, match=complaint):
        import_capture(capture)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda row: row.update(bs=2), r"trace_3\.jsonl\.xz:5: r: .* is not 2 rows"),
        (lambda row: row["r"][0].__setitem__(1, -1), r":5: r: .* is not 1 rows"),
        (lambda row: row["r"][0].__setitem__(2, 7), r":5: r: .* is not 1 rows"),
        (lambda row: row.update(a=[4]), r":5: a: .* is not 1 counts from 0 to 4 - 1"),
        (lambda row: row.update(a=None), r":5: a: null is not a list of whole numbers"),
        (lambda row: row.update(nd=None), r":5: a: .* is not null"),
        (lambda row: row.update(t=None), r":5: t: null is not a time"),
        (lambda row: row.update(t=-1.0), r":5: t: -1\.0 is not a time"),
        (lambda row: row.update(t=float("nan")), r":5: .*NaN"),
        (lambda row: row.update(g=1), r":5: g: 1 is not true or false"),
    ],
)
def test_a_broken_iteration_is_refused_with_line_and_field(capture: Path, edit: Edit, complaint: str) -> None:
    rewrite(capture / "trace_3.jsonl.xz", edit, line=5)
    with pytest.raises(ImportFileError, match=complaint):
        import_capture(capture)


@pytest.mark.parametrize("text", ["{", "[1]", "", '{"v": NaN}', '{"t0": 1e999}', "[" * 9999])
def test_a_line_that_is_not_an_object_is_refused(capture: Path, text: str) -> None:
    path = capture / "requests.jsonl.xz"
    rows = lzma.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(lzma.compress("\n".join([rows[0], text, *rows[2:]]).encode()))
    with pytest.raises(ImportFileError, match=r"requests\.jsonl\.xz:2: "):
        import_capture(capture)


def test_a_failed_request_is_kept_as_a_failure(capture: Path) -> None:
    rewrite(capture / "requests.jsonl.xz", lambda row: row.update(status=500, meta=None, err="Internal Server Error"))
    facts = import_capture(capture)
    failed = [request for request in facts.requests if request.outcome is not Outcome.OK]
    assert [(request.outcome, request.status) for request in failed] == [(Outcome.HTTP_ERROR, 500)]


def test_a_gap_in_the_trace_is_counted_as_lost(capture: Path) -> None:
    path = capture / "trace_3.jsonl.xz"
    rows = lzma.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(lzma.compress("\n".join(rows[:9] + rows[12:]).encode()))
    assert import_capture(capture).trace.lost == 3


@given(junk=st.binary(max_size=200))
def test_any_bytes_in_place_of_the_requests_give_one_line_of_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    (folder / "requests.jsonl.xz").write_bytes(lzma.compress(junk, preset=0))
    with pytest.raises(ImportFileError) as refusal:
        import_capture(folder)
    assert "\n" not in str(refusal.value)
