"""Who listens on a port: an answer from there is this launch's own only if the listener belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["listens"]

_LISTEN = "0A"


def listens(port: int, *, group: int) -> bool | None:
    """Whether a process of `group` listens on the TCP port; None where the kernel shows no listener at all."""
    sockets = {f"socket:[{inode}]" for inode in _listeners(port)}
    return any(target in sockets for target in _open_files(group)) if sockets else None


def _listeners(port: int) -> Iterator[str]:
    """Inodes of the sockets that listen on the port."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for row in table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else ():
            _, local, _, state, *rest = row.split()
            if state == _LISTEN and int(local.rpartition(":")[2], 16) == port:
                yield rest[5]


def _open_files(group: int) -> Iterator[str]:
    """What the open files of the group's processes point to; a process may end while it is looked at."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and _group(entry) == group:
                yield from (str(link.readlink()) for link in (entry / "fd").iterdir())
        except OSError:
            continue


def _group(entry: Path) -> int:
    return int((entry / "stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[2])
