"""One segment file: preallocated, mapped, appended to by copying into memory.

What has been copied into the map belongs to the kernel, so a process killed a moment later loses nothing.
The file is allocated in full before it is mapped: a write into a hole of a map on a full disk is a SIGBUS,
an allocation on a full disk is an OSError. Where maps are not safe (network and user-space file systems)
the same bytes go through pwrite(2).
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from speckit_trace.layout import DROPPED, DROPPED_OFFSET

_MOUNTS = Path("/proc/self/mountinfo")
_UNMAPPABLE = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph", "lustre")


class Segment:
    """A file of fixed size that is filled from the front, by assigning slices of `bytes`.

    Args:
        path: must not exist.
        size: bytes to allocate; writing beyond raises.
        mapped: False writes through the descriptor instead.

    Raises:
        OSError: the file exists, or cannot be created or allocated.
    """

    __slots__ = ("_descriptor", "_map", "bytes")

    bytes: mmap.mmap | Unmapped

    def __init__(self, path: Path, size: int, *, mapped: bool) -> None:
        self._map: mmap.mmap | None = None
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            if mapped:
                os.posix_fallocate(self._descriptor, 0, size)
                self._map = mmap.mmap(self._descriptor, size)
        except OSError:
            os.close(self._descriptor)
            path.unlink()
            raise
        # Assigning a slice of a map is one copy: nothing cheaper appends.
        self.bytes = self._map if self._map is not None else Unmapped(self._descriptor)

    def set_dropped(self, count: int) -> None:
        """Rewrite the live word; eight bytes, so that a reader sees the old number or the new one."""
        self.bytes[DROPPED_OFFSET : DROPPED_OFFSET + DROPPED.size] = DROPPED.pack(count)

    def close(self, used: int) -> None:
        """Unmap and cut the file to what was used."""
        if self._map is not None:
            self._map.close()
        os.ftruncate(self._descriptor, used)
        os.close(self._descriptor)


class Unmapped:
    """A file whose bytes are assigned by slices, as those of a map are."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __setitem__(self, where: slice, data: bytes) -> None:
        if os.pwrite(self._descriptor, data, where.start) != len(data):
            raise OSError(f"only a part of {len(data)} bytes was written: the disk is full")


def can_map(directory: Path) -> bool:
    """Whether a shared map in this directory is safe, by the type of its file system."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return not _file_system(directory.resolve(), mounts).startswith(_UNMAPPABLE)


def _file_system(directory: Path, mounts: list[str]) -> str:
    """Type of the mount that holds the directory: the longest mount point wins, the later of equal ones."""
    best, kind = "", "unknown"
    for line in mounts:
        fields = line.split(" ")
        # The kernel writes blanks and backslashes of a mount point as octal escapes.
        point = fields[4].encode().decode("unicode_escape")
        if len(point) >= len(best) and directory.is_relative_to(point):
            best, kind = point, fields[fields.index("-") + 1]
    return kind
