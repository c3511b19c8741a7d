"""Segment files: allocated before use, written through where maps are unsafe, never left behind half made."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from speckit_trace import segment, stream
from speckit_trace.segment import Segment

from kit.importers.trace import read_trace
from tests.trace_patch.written import Req, decode, recorder

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /data rw,relatime shared:7 - nfs4 server:/export rw
31 30 8:17 / /data/local\\040disk rw,relatime - xfs /dev/sdb1 rw
32 22 0:33 / /mnt rw,nosuid master:1 shared:9 - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        ("/results", "ext4"),
        ("/data/runs", "nfs4"),
        ("/data/local disk/runs", "xfs"),
        ("/data/local", "nfs4"),
        ("/mnt/x", "fuse.sshfs"),
        ("/database", "ext4"),
    ],
)
def test_the_file_system_is_that_of_the_deepest_mount(directory: str, kind: str) -> None:
    assert segment._file_system(Path(directory), MOUNTS.splitlines()) == kind


def test_maps_are_used_here_and_not_on_network_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert segment.can_map(tmp_path)
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.replace(" / / ", " / /elsewhere ").replace("/mnt", str(tmp_path)))
    monkeypatch.setattr(segment, "_MOUNTS", mounts)
    assert not segment.can_map(tmp_path)


def test_where_the_file_system_is_unknown_nothing_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "_MOUNTS", tmp_path / "missing")
    assert not segment.can_map(tmp_path)


@pytest.mark.parametrize("mapped", [True, False])
def test_both_ways_of_writing_give_the_same_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    monkeypatch.setattr(stream, "can_map", lambda directory: mapped)
    writer = recorder(tmp_path, segment_bytes=4096)
    for number in range(1, 200):
        decode(writer, number, [Req("a"), Req("b")], [1, 0])
    assert read_trace(tmp_path, launch=0).lost == 0
    writer.end(iteration=199)
    assert read_trace(tmp_path, launch=0).rounds.accepted.tolist() == [1, 0] * 199


@pytest.mark.parametrize("mapped", [True, False])
def test_the_drop_count_is_in_the_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool) -> None:
    monkeypatch.setattr(stream, "can_map", lambda directory: mapped)
    writer = recorder(tmp_path)
    decode(writer, 1, [Req("a")], [300])
    decode(writer, 2, [Req("a")], [1])
    assert read_trace(tmp_path, launch=0).lost == 2


def test_a_segment_is_allocated_in_full_before_it_is_written(tmp_path: Path) -> None:
    Segment(tmp_path / "s", 1 << 20, mapped=True)
    assert (tmp_path / "s").stat().st_blocks * 512 >= 1 << 20


def test_a_segment_that_cannot_be_allocated_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        Segment(tmp_path / "s", 1 << 20, mapped=True)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(FileExistsError):
        Segment(tmp_path / "s", 1 << 20, mapped=True)
    assert (tmp_path / "s").read_text() == "mine"


def test_a_short_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Segment(tmp_path / "s", 1 << 20, mapped=False)
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: len(data) - 1)
    with pytest.raises(OSError, match="disk is full"):
        made.bytes[0:8] = b"12345678"


def test_a_closed_segment_is_as_long_as_what_was_written(tmp_path: Path) -> None:
    made = Segment(tmp_path / "s", 1 << 20, mapped=True)
    made.bytes[0:8] = b"12345678"
    made.close(8)
    assert (tmp_path / "s").read_bytes() == b"12345678"
