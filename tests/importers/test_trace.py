"""Binary traces: what was written is what is read, and no damage goes unnoticed or raises."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.errors import ImportFileError
from kit.importers.recording import Recording
from kit.importers.segments import Kind, RowFlag
from kit.importers.trace import TraceReader, read_recording, read_trace
from kit.importers.trace_ledger import Ledger
from tests.trace_patch.written import Recorder, Req, decode, layout, prefill, recorder

Content = dict[int, list[tuple[str, int, int]]]

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@dataclass(frozen=True)
class Row:
    """One row as a test wants it written."""

    rid: str
    tokens: int
    accepted: int
    finished: bool
    retracted: bool


ROWS = st.builds(Row, NAMES, st.integers(0, 300), st.integers(0, 254), finished=st.booleans(), retracted=st.booleans())
BATCHES = st.lists(ROWS, max_size=9, unique_by=lambda row: row.rid)
STEPS = st.lists(st.tuples(st.sampled_from(["decode", "drafted", "prefill"]), BATCHES), max_size=30)


@contextmanager
def folder() -> Iterator[Path]:
    """A fresh folder for one example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def written(directory: Path, steps: Sequence[tuple[str, list[Row]]]) -> None:
    writer = recorder(directory, segment_bytes=3000)
    for number, (kind, rows) in enumerate(steps, start=1):
        reqs = [Req(row.rid, row.tokens, "stop" if row.finished else None, is_retracted=row.retracted) for row in rows]
        if kind == "prefill":
            prefill(writer, number, reqs, [row.tokens for row in rows], [row.accepted for row in rows])
        else:
            decode(writer, number, reqs, [row.accepted for row in rows] if kind == "drafted" else None)
    assert writer.stopped is None
    writer.end(iteration=len(steps))


@given(STEPS)
def test_every_row_that_was_written_is_read(steps: list[tuple[str, list[Row]]]) -> None:
    with folder() as directory:
        written(directory, steps)
        recording = read_recording(directory)
    rows = recording.rows
    assert (recording.lost, recording.faults, recording.ended) == (0, (), True)
    assert recording.steps.number.tolist() == list(range(1, len(steps) + 1))
    assert recording.steps.rows.tolist() == [len(batch) for _, batch in steps]
    flat = [(kind, row) for kind, batch in steps for row in batch]
    assert [recording.rids[rid] for rid in rows.rid] == [row.rid for _, row in flat]
    assert rows.tokens_before.tolist() == [row.tokens for _, row in flat]
    assert rows.accepted.tolist() == [row.accepted if kind == "drafted" else -1 for kind, row in flat]
    assert rows.having(RowFlag.FINISHED).tolist() == [row.finished for _, row in flat]
    assert rows.having(RowFlag.RETRACTED).tolist() == [row.retracted for _, row in flat]
    prefills = [sum(row.tokens for row in batch) if kind == "prefill" else 0 for kind, batch in steps]
    assert recording.steps.new_tokens.tolist() == prefills


@given(BATCHES, st.lists(st.integers(0, 9), min_size=2, max_size=40), st.sets(st.integers(0, 39)))
def test_rounds_of_the_same_requests_are_read_like_the_first(
    batch: list[Row], growth: list[int], looks: set[int]
) -> None:
    reqs = [Req(row.rid, row.tokens) for row in batch]
    expected: list[tuple[str, int, int]] = []
    pieces = []
    with folder() as directory:
        writer, reader = recorder(directory, segment_bytes=3000), TraceReader(directory)
        for number, accepted in enumerate(growth, start=1):
            expected += [(req.rid, len(req.output_ids), accepted) for req in reqs]
            decode(writer, number, reqs, [accepted] * len(reqs))
            for req in reqs:
                req.output_ids.extend([7] * (accepted + 1))
            if number in looks:
                pieces.append(reader.read_new())
        writer.end(iteration=len(growth))
        pieces.append(reader.read_new(final=True))
        whole = read_recording(directory)
    for read in ([whole], [piece for piece in pieces if piece is not None]):
        found = [
            (piece.rids[rid], int(tokens), int(accepted))
            for piece in read
            for rid, tokens, accepted in zip(piece.rows.rid, piece.rows.tokens_before, piece.rows.accepted, strict=True)
        ]
        assert found == expected
    assert (whole.lost, whole.faults) == (0, ())
    assert not whole.rows.flags.any()


@given(STEPS)
def test_decode_iterations_are_numbered_without_a_gap_across_prefills(steps: list[tuple[str, list[Row]]]) -> None:
    with folder() as directory:
        written(directory, steps)
        trace = read_trace(directory, launch=3)
    decodes = [batch for kind, batch in steps if kind != "prefill"]
    assert trace.iterations.number.tolist() == list(range(len(decodes)))
    assert trace.iterations.batch_size.tolist() == [len(batch) for batch in decodes]
    assert trace.rounds.iteration.tolist() == [i for i, batch in enumerate(decodes) for _ in batch]
    assert trace.rounds.ghost.tolist() == [row.finished or row.retracted for batch in decodes for row in batch]


@given(STEPS, st.lists(st.integers(0, 29), max_size=6))
def test_pieces_read_while_the_server_writes_add_up_to_the_whole(
    steps: list[tuple[str, list[Row]]], looks: list[int]
) -> None:
    with folder() as directory:
        writer = recorder(directory, segment_bytes=3000)
        reader = TraceReader(directory)
        pieces = []
        for number, (_, rows) in enumerate(steps, start=1):
            decode(writer, number, [Req(row.rid, row.tokens) for row in rows], [row.accepted for row in rows])
            if number in looks:
                pieces.append(reader.read_new())
        writer.end(iteration=len(steps))
        pieces.append(reader.read_new(final=True))
        whole = read_recording(directory)
    found = [piece for piece in pieces if piece is not None]
    assert [n for piece in found for n in piece.steps.number] == whole.steps.number.tolist()
    assert [n for piece in found for n in piece.decode_number] == whole.decode_number.tolist()
    assert [piece.rids[r] for piece in found for r in piece.rows.rid] == [whole.rids[r] for r in whole.rows.rid]
    assert sum(piece.lost for piece in found) == 0


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some segments with every kind of record in them, ended by a kill: the last one is as long as allocated."""
    directory = tmp_path_factory.mktemp("intact")
    writer = recorder(directory, segment_bytes=4000)
    reqs = [Req(f"request-{row}") for row in range(3)]
    for number in range(1, 200):
        if number % 20 == 1:
            prefill(writer, number, reqs, [5, 6, 7], [0, 0, 1])
        else:
            decode(writer, number, reqs[: 1 + number % 3], [number % 4] * (1 + number % 3))
        if number % 50 == 0:
            writer.event("flush", iteration=number)
    writer.stream.segment.close(writer.stream.position + 200)
    assert len(list(directory.iterdir())) > 3
    return directory


@pytest.fixture(scope="module")
def whole(intact: Path) -> Content:
    return content(read_recording(intact))


def content(recording: Recording) -> Content:
    """Rows by iteration number."""
    rows = recording.rows
    by_number: Content = {int(number): [] for number in recording.steps.number}
    for step, rid, tokens, accepted in zip(rows.step, rows.rid, rows.tokens_before, rows.accepted, strict=True):
        row = (recording.rids[rid], int(tokens), int(accepted))
        by_number[int(recording.steps.number[step])].append(row)
    return by_number


@contextmanager
def damaged(intact: Path, which: int) -> Iterator[tuple[Path, Path]]:
    """A copy of the trace, and the file to damage."""
    with folder() as directory:
        shutil.copytree(intact, directory / "trace")
        files = sorted((directory / "trace").iterdir())
        yield directory / "trace", files[which % len(files)]


def judge(whole: Content, directory: Path) -> None:
    """Whatever was done to the trace: nothing wrong is read, and nothing that is missing is missing silently."""
    try:
        recording = read_recording(directory)
    except ImportFileError as error:
        assert "\n" not in str(error)
        return
    read = content(recording)
    assert all(whole[number] == rows for number, rows in read.items())
    if len(read) < len(whole):
        last_segment_cut = not recording.ended and list(read) == list(range(1, len(read) + 1))
        assert recording.lost > 0 or last_segment_cut
    assert recording.lost >= len(recording.faults)
    assert all("\n" not in fault for fault in recording.faults)


DAMAGE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@DAMAGE
@given(which=st.integers(0, 20), at=st.integers(0, 4100), flip=st.integers(1, 255))
def test_a_flipped_byte_is_noticed(intact: Path, whole: Content, which: int, at: int, flip: int) -> None:
    with damaged(intact, which) as (directory, path):
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= flip
        path.write_bytes(data)
        judge(whole, directory)


@DAMAGE
@given(which=st.integers(0, 20), length=st.integers(0, 4100))
def test_a_truncated_segment_is_noticed(intact: Path, whole: Content, which: int, length: int) -> None:
    with damaged(intact, which) as (directory, path):
        path.write_bytes(path.read_bytes()[:length])
        judge(whole, directory)


@DAMAGE
@given(which=st.integers(0, 20), at=st.integers(0, 4000), noise=st.binary(min_size=1, max_size=200))
def test_overwritten_bytes_are_noticed(intact: Path, whole: Content, which: int, at: int, noise: bytes) -> None:
    with damaged(intact, which) as (directory, path):
        data = path.read_bytes()
        path.write_bytes(data[:at] + noise + data[at + len(noise) :])
        judge(whole, directory)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_missing_segment_is_counted(intact: Path, which: int) -> None:
    with damaged(intact, which) as (directory, path):
        path.unlink()
        recording = read_recording(directory)
        assert any("1 segments before" in fault for fault in recording.faults)
        missing = 199 - len(recording.steps)
        assert recording.lost == (missing if which else max(1, recording.lost))


@pytest.mark.parametrize("length", [64, 64 + 4])
def test_a_trace_without_its_beginning_is_not_whole(intact: Path, length: int) -> None:
    with damaged(intact, 0) as (directory, path):
        path.write_bytes(path.read_bytes()[:length])
        recording = read_recording(directory)
        assert "the beginning is missing, and with it an unknown number of iterations" in recording.faults
        assert recording.lost > 0


def test_behind_a_damage_reading_goes_on_in_the_next_segment(intact: Path) -> None:
    with damaged(intact, 1) as (directory, path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        recording = read_recording(directory)
        assert recording.lost == 199 - len(recording.steps) > 0
        assert recording.steps.number[-1] == 199
        assert "a damaged record" in recording.faults[0]


def test_a_torn_tail_is_a_damage_of_a_finished_trace_and_patience_of_a_running_one(intact: Path) -> None:
    with damaged(intact, -1) as (directory, path):
        data = path.read_bytes()
        end = len(data.rstrip(b"\0")) // 4 * 4
        path.write_bytes(data[: end - 8] + bytes(len(data) - end + 8))
        assert read_recording(directory).faults == (
            f"{path.name} has a damaged record at byte {read_position(directory)}; nothing behind it was read",
        )
        running = TraceReader(directory).read_new()
        assert running is not None
        assert (running.faults, running.lost) == ((), 0)


def read_position(directory: Path) -> int:
    reader = TraceReader(directory)
    reader.read_new()
    return reader._offset


def test_a_segment_whose_writer_was_killed_before_it_began_is_nothing(intact: Path) -> None:
    with damaged(intact, -1) as (directory, path):
        number = int(path.stem.split("-")[1])
        path.with_name(f"{path.stem.split('-')[0]}-{number + 1:06d}{path.suffix}").write_bytes(bytes(4000))
        recording = read_recording(directory)
        assert (len(recording.steps), recording.faults) == (199, ())


def test_a_folder_without_a_trace_is_refused_with_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="holds no trace; was SPECKIT_TRACE_DIR set"):
        read_recording(tmp_path)
    assert TraceReader(tmp_path).read_new() is None


@pytest.mark.parametrize(
    ("reads", "kit"), [(layout.FORMAT_VERSION - 1, "a newer"), (layout.FORMAT_VERSION + 1, "an older")]
)
def test_another_format_is_refused_by_name(intact: Path, monkeypatch: pytest.MonkeyPatch, reads: int, kit: str) -> None:
    monkeypatch.setattr("kit.importers.segments.FORMAT_VERSION", reads)
    statement = f"a trace of format {layout.FORMAT_VERSION} needs {kit} kit; this one reads format {reads}"
    with pytest.raises(ImportFileError, match=statement):
        read_recording(intact)


@pytest.mark.parametrize("kind", [99, max(Kind) + 1])
def test_kinds_that_this_kit_does_not_know_are_skipped(tmp_path: Path, kind: int) -> None:
    writer = recorder(tmp_path)
    writer.stream.put(layout.text_record(kind, "whatever"))
    decode(writer, 1, [Req("a")])
    writer.end(iteration=1)
    assert (len(read_recording(tmp_path).steps), read_recording(tmp_path).lost) == (1, 0)


@pytest.mark.parametrize(
    ("record", "statement"),
    [
        ((Kind.EVENT, b"[1] "), "not a JSON object"),
        ((Kind.EVENT, b"{   "), "not JSON"),
        ((Kind.RIDS, b"\xff123"), "names requests in a way that cannot be read"),
        ((Kind.ITERATION, b"1234"), "length that its kind cannot have"),
        ((Kind.ITERATION, bytes(32)), "length that its kind cannot have"),
        ((Kind.ITERATION, bytes(36)), "rows of requests it does not name"),
        ((Kind.PREFILL, b"1234"), "length that its kind cannot have"),
        ((Kind.PREFILL, bytes(40)), "length that its kind cannot have"),
        ((Kind.SHORT, bytes(24)), "length that its kind cannot have"),
        ((Kind.SHORT, bytes(32)), "length that its kind cannot have"),
        ((Kind.SHORT, bytes(36)), "an iteration of a batch it does not name"),
    ],
)
def test_a_whole_record_that_breaks_its_promise_is_refused(
    tmp_path: Path, record: tuple[Kind, bytes], statement: str
) -> None:
    kind, payload = record
    payload += bytes(-len(payload) % 4)
    writer = recorder(tmp_path)
    writer.stream.put(layout.sealed(layout.first_word(kind, len(payload) + 8).to_bytes(4, "little") + payload))
    with pytest.raises(ImportFileError, match=statement):
        read_recording(tmp_path)


def settle(ledger: Ledger, numbers: list[int], *events: tuple[str, int]) -> tuple[list[int], int]:
    array = np.array(numbers, np.int64)
    said = [{"event": name, "iteration": iteration} for name, iteration in events]
    decode_numbers, lost = ledger.settle(array, np.ones(len(array), bool), said)
    return decode_numbers.tolist(), lost


def test_gaps_within_and_between_pieces_are_losses() -> None:
    ledger = Ledger()
    assert settle(ledger, [1, 2, 5], ("start", 0)) == ([0, 1, 4], 2)
    assert settle(ledger, [8]) == ([7], 2)


def test_a_flush_tells_what_is_missing_at_the_tail() -> None:
    ledger = Ledger()
    assert settle(ledger, [1, 2], ("start", 0), ("flush", 4)) == ([0, 1], 2)
    assert settle(ledger, [5]) == ([4], 0)


def test_a_pause_excuses_its_own_iterations_only() -> None:
    ledger = Ledger()
    assert settle(ledger, [1, 2, 9], ("start", 0), ("pause", 3), ("resume", 7)) == ([0, 1, 4], 2)


def test_a_pause_over_several_pieces_is_still_one_pause() -> None:
    ledger = Ledger()
    assert settle(ledger, [1], ("start", 0), ("pause", 1)) == ([0], 0)
    assert settle(ledger, []) == ([], 0)
    assert settle(ledger, [], ("resume", 50)) == ([], 0)
    assert settle(ledger, [51, 52], ("end", 52)) == ([1, 2], 0)


def test_a_number_that_does_not_grow_is_a_loss() -> None:
    assert settle(Ledger(), [4, 5, 5, 6], ("start", 3))[1] == 1


def test_without_a_start_the_first_number_is_taken_as_the_beginning() -> None:
    assert settle(Ledger(), [40, 41]) == ([0, 1], 0)


def test_a_recorder_that_ends_twice_ends_once(tmp_path: Path) -> None:
    writer: Recorder = recorder(tmp_path)
    writer.end(iteration=0)
    writer.end(iteration=0)
    assert [event["event"] for event in read_recording(tmp_path).events] == ["start", "end"]
