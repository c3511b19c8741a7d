"""A server that says exactly the bytes it is told to, in a thread of its own."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["CHUNKED", "Play", "Scripted", "close", "pause", "playing", "reset", "say"]

Play = Callable[[socket.socket], None]
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Scripted:
    """Where it listens, how many connections it took, and when it last said something (monotonic ns)."""

    url: str
    connections: int = 0
    said_ns: list[int] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)


def say(data: bytes) -> Play:
    """Send bytes."""
    return lambda peer: peer.sendall(data)


def pause(seconds: float) -> Play:
    """Say nothing for a while."""
    return lambda _: time.sleep(seconds)


def close(peer: socket.socket) -> None:
    """End the connection."""
    peer.shutdown(socket.SHUT_RDWR)


def reset(peer: socket.socket) -> None:
    """End it the hard way."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


@contextmanager
def playing(*plays: Play) -> Iterator[Scripted]:
    """Play the same answer to every request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=_accept, args=(listener, server, plays), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, server: Scripted, plays: tuple[Play, ...]) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        server.connections += 1
        threading.Thread(target=_serve, args=(peer, server, plays), daemon=True).start()


def _serve(peer: socket.socket, server: Scripted, plays: tuple[Play, ...]) -> None:
    with peer:
        try:
            while request := _request(peer):
                server.requests.append(request)
                for play in plays:
                    server.said_ns.append(time.monotonic_ns())
                    play(peer)
        except OSError:
            return


def _request(peer: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += (more := peer.recv(65536))
        if not more:
            return b""
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body
