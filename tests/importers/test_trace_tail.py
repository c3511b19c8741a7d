"""Following a trace while it is written: whichever form, the pieces add up to the whole and gaps are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.errors import ImportFileError
from kit.importers.trace import read_trace
from kit.importers.trace_tail import TRACE_FILE, TraceTail
from tests.trace_patch.written import Req, decode, recorder


def line(number: int, tokens: int = 1) -> str:
    values = {"i": number, "t": number / 10, "nd": 4, "bs": 1, "r": [["r0", tokens, 0]], "a": [2], "g": True}
    return json.dumps(values) + "\n"


def test_without_a_trace_there_is_nothing_to_follow(tmp_path: Path) -> None:
    assert TraceTail(tmp_path, 0).read_new() is None


def test_lines_come_once_and_an_unfinished_one_waits(tmp_path: Path) -> None:
    path, tail = tmp_path / TRACE_FILE, TraceTail(tmp_path, 3)
    path.write_text(line(1) + line(2)[:10])
    first = tail.read_new()
    path.write_text(line(1) + line(2))
    second, third = tail.read_new(), tail.read_new()
    assert first and second and third
    assert [piece.iterations.number.tolist() for piece in (first, second, third)] == [[1], [2], []]
    assert (first.iterations.launch.tolist(), first.rids, second.lost) == ([3], ("r0",), 0)


def test_a_gap_between_two_looks_is_a_loss(tmp_path: Path) -> None:
    path, tail = tmp_path / TRACE_FILE, TraceTail(tmp_path, 0)
    path.write_text(line(1))
    tail.read_new()
    path.write_text(line(1) + line(5))
    later = tail.read_new()
    assert later is not None and later.lost == 3


def test_a_broken_line_is_named_with_its_number(tmp_path: Path) -> None:
    path, tail = tmp_path / TRACE_FILE, TraceTail(tmp_path, 0)
    path.write_text(line(1) + "{}\n")
    with pytest.raises(ImportFileError, match=rf"{TRACE_FILE}:2"):
        tail.read_new()


def test_segments_of_the_trace_patch_are_followed_too(tmp_path: Path) -> None:
    writer, tail = recorder(tmp_path, segment_bytes=3000), TraceTail(tmp_path, 5)
    decode(writer, 1, [Req("r0", 1)], [2])
    first = tail.read_new()
    decode(writer, 2, [Req("r0", 4), Req("r1", 1)], [0, 3])
    second = tail.read_new()
    writer.end(iteration=2)
    whole = read_trace(tmp_path, launch=5)
    assert first and second
    accepted = [*first.rounds.accepted.tolist(), *second.rounds.accepted.tolist()]
    assert accepted == whole.rounds.accepted.tolist() == [2, 0, 3]
    assert second.iterations.launch.tolist() == [5]
    assert [second.rids[r] for r in second.rounds.rid] == ["r0", "r1"]
