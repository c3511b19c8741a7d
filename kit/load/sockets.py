"""Sockets that stamp what they receive, and how they get connected."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Any

import httpx

from kit.load.arrivals import KERNEL_STAMPS

__all__ = ["Addresses", "addresses_of", "connect", "stamping_socket", "words"]

Addresses = Sequence[tuple[int, int, int, str, tuple[Any, ...]]]


async def connect(addresses: Addresses) -> socket.socket:
    """A socket connected to the first address that answers, which stamps what it receives where the kernel can.

    Raises httpx.ConnectError with the words of the system.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        try:
            stream = socket.socket(family, kind, protocol)
        except OSError as error:  # no descriptor left, or a family that this host does not have
            failure = error
            continue
        try:
            stream.setblocking(False)
            await loop.sock_connect(stream, address)
        except OSError as error:
            stream.close()
            failure = error
        except asyncio.CancelledError:
            stream.close()
            raise
        else:
            _prepare(stream)
            return stream
    raise httpx.ConnectError(words(failure) if failure else "the host has no address") from failure


async def addresses_of(host: str, port: int) -> Addresses:
    """Where a host can be reached. Raises httpx.ConnectError with a socket.gaierror as its `__cause__`."""
    with contextlib.suppress(socket.gaierror):  # not a number; a number needs no thread to look it up
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    try:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise httpx.ConnectError(f"{host}: {error.strerror}") from error


def stamping_socket() -> socket.socket:
    """A socket that only asks for stamps: the kernel takes them while anybody does, and begins some time after that.

    Kept open, it spares the first answer of a cell from coming in without one.
    """
    keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _ask_for_stamps(keeper)
    return keeper


def _prepare(stream: socket.socket) -> None:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _ask_for_stamps(stream)


def _ask_for_stamps(stream: socket.socket) -> None:
    if KERNEL_STAMPS is not None:
        with contextlib.suppress(OSError):  # refused: every read will count as unstamped
            stream.setsockopt(socket.SOL_SOCKET, KERNEL_STAMPS, 1)


def words(error: OSError) -> str:
    """What the system calls an error."""
    return os.strerror(error.errno) if error.errno else type(error).__name__
