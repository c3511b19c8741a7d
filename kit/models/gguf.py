"""Reading a GGUF file: what it says about its model, and its weights as float32.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3, little-endian. Of its block formats only
those that the catalogue's models use are read.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Gguf", "read_gguf"]

Floats = npt.NDArray[np.float32]

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Gguf:
    """Metadata by key, and for each tensor a call that reads it in its natural shape (rows first)."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Callable[[], Floats]]


def read_gguf(path: Path) -> Gguf:
    """Open `path`. Raises ValueError for anything that is not a GGUF of a known form."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(data)
    if data[:4] != b"GGUF" or cursor.skip(4).scalar("<I") != 3:
        raise ValueError(f"{path.name} is not a GGUF of version 3")
    tensors, pairs = cursor.scalar("<Q"), cursor.scalar("<Q")
    facts = dict(cursor.pair() for _ in range(pairs))
    directory = [cursor.tensor() for _ in range(tensors)]
    start = -(-cursor.at // _ALIGNMENT) * _ALIGNMENT
    return Gguf(facts, {entry.name: _reader(data, entry, start) for entry in directory})


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Cursor:
    """Reads values one after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.at = 0

    def skip(self, size: int) -> _Cursor:
        self.at += size
        return self

    def scalar(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self) -> str:
        size = self.scalar("<Q")
        self.at += size
        return self._data[self.at - size : self.at].decode()

    def pair(self) -> tuple[str, Any]:
        return self.text(), self._value(self.scalar("<I"))

    def tensor(self) -> _Entry:
        name = self.text()
        shape = tuple(self.scalar("<Q") for _ in range(self.scalar("<I")))
        return _Entry(name, shape[::-1], self.scalar("<I"), self.scalar("<Q"))

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            of, count = self.scalar("<I"), self.scalar("<Q")
            return [self._value(of) for _ in range(count)]
        return self.scalar(_SCALARS[kind])


def _reader(data: mmap.mmap, entry: _Entry, start: int) -> Callable[[], Floats]:
    if entry.kind not in _BLOCKS:
        raise ValueError(f"{entry.name} has block format {entry.kind}; there are {', '.join(map(str, _BLOCKS))}")
    block, values, decode = _BLOCKS[entry.kind]
    blocks = math.prod(entry.shape) // values

    def read() -> Floats:
        raw = np.frombuffer(data, np.uint8, blocks * block, start + entry.offset).reshape(blocks, block)
        return decode(raw).reshape(entry.shape)

    return read


def _plain(raw: npt.NDArray[np.uint8]) -> Floats:
    return raw.view("<f4")


def _q4_1(raw: npt.NDArray[np.uint8]) -> Floats:
    """Blocks of 32: scale and minimum as float16, then the low and the high halves of sixteen bytes."""
    scale, least = (raw[:, at : at + 2].copy().view("<f2").astype(np.float32) for at in (0, 2))
    packed = raw[:, 4:]
    return scale * np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) + least


def _q8_0(raw: npt.NDArray[np.uint8]) -> Floats:
    """Blocks of 32: a scale as float16, then signed bytes."""
    return raw[:, :2].copy().view("<f2").astype(np.float32) * raw[:, 2:].view(np.int8).astype(np.float32)


# Bytes and values of a block, and its decoder, by the number of the format.
_BLOCKS: dict[int, tuple[int, int, Callable[[npt.NDArray[np.uint8]], Floats]]] = {
    0: (4, 1, _plain),
    3: (20, 32, _q4_1),
    8: (34, 32, _q8_0),
}
