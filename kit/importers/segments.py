"""Records of one trace segment, from bytes to columns. The format is docs/trace.md; this is its reading half.

Record boundaries are a chain of lengths, walked in Python; everything behind them is vectorised. One checksum
call proves all records at once, and only a segment that fails it is searched for the damage.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from kit.errors import ImportFileError
from kit.importers.segment_rows import BROKEN, KIND_SHIFT, LENGTH_MASK, NOBODY, Batch, Kind, RowFlag, Words, rows_of
from kit.records import Ints

__all__ = [
    "FORMAT_VERSION",
    "GRAPH_BIT",
    "NOBODY",
    "SUFFIX",
    "Heads",
    "Kind",
    "Opening",
    "Records",
    "RowFlag",
    "opening",
    "records",
]

SUFFIX = ".spktrace"
FORMAT_VERSION = 2
GRAPH_BIT = 0x80

_MAGIC = b"SPKTRACE"
_OPENING = struct.Struct("<8sHHI16sIIQQQ")
_CHECKED, _CHECKSUM = 56, slice(36, 40)
# The CRC-32 of any text followed by its own CRC-32: what all records of an undamaged segment amount to.
_RESIDUE = 0x2144DF1C

_SHORTEST = 2  # words: the first one and the checksum
_REPEATED, _STRETCH = 3, 256  # equal records until a run is looked for, and how far it is looked for

_ITERATION = np.dtype(
    [
        ("first", "<u4"),
        ("number", "<u4"),
        ("launch_ns", "<u8"),
        ("ready_ns", "<u8"),
        ("draft_tokens", "<u2"),
        ("depth", "u1"),
        ("mode", "u1"),
        ("running", "<u2"),
        ("waiting", "<u2"),
    ]
)
_PREFILL = np.dtype([*_ITERATION.descr, ("new_tokens", "<u4"), ("cached_tokens", "<u4")])
_SWITCH = np.dtype(
    [
        ("first", "<u4"),
        ("number", "<u4"),
        ("at_ns", "<u8"),
        ("before", "u1"),
        ("after", "u1"),
        ("by_result", "u1"),
        ("unused", "u1"),
        ("slot", "<u4"),
        ("average", "<f8"),
    ]
)

Heads = npt.NDArray[np.void]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Opening:
    """The first bytes of a segment, `size` of them. `dropped` counts iterations passed over after a stop."""

    number: int
    stream: str
    pid: int
    monotonic_ns: int
    wall_ns: int
    dropped: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Consecutive records of one segment.

    `iterations`, `prefills` (those of them that have counts of prompt tokens) and `switches` are structured arrays.
    `rows` counts the rows of each iteration; the row columns run through all of them, and `rid` indexes the names of
    the segment, of which `rids` are the ones given here. `batch` is who was in the last iteration. `stop` is where
    reading ended; `damage` says what is there, None for nothing.
    """

    stop: int
    damage: str | None
    headers: tuple[JsonObject, ...]
    events: tuple[JsonObject, ...]
    rids: tuple[str, ...]
    iterations: Heads
    prefills: Heads
    switches: Heads
    rows: Ints
    tokens_before: npt.NDArray[np.uint32]
    rid: npt.NDArray[np.integer[Any]]
    accepted: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    batch: Batch


def opening(data: bytes) -> Opening | None:
    """What a segment says first; None when that is damaged.

    Raises:
        ImportFileError: the segment is of another format.
    """
    if len(data) < _OPENING.size or not data.startswith(_MAGIC):
        return None
    _, version, size, number, stream, pid, checksum, monotonic_ns, wall_ns, dropped = _OPENING.unpack_from(data)
    checked = bytearray(data[:_CHECKED])
    checked[_CHECKSUM] = bytes(4)
    if zlib.crc32(checked) != checksum:
        return None
    if version != FORMAT_VERSION:
        kit = "a newer" if version > FORMAT_VERSION else "an older"
        raise ImportFileError(f"a trace of format {version} needs {kit} kit; this one reads format {FORMAT_VERSION}")
    return Opening(number, stream.hex(), pid, monotonic_ns, wall_ns, dropped, size)


def records(data: bytes, start: int, batch: Batch = NOBODY) -> Records:
    """All whole records from byte `start` (a multiple of four) up to the end or the first damage.

    Args:
        data: the segment as far as it is written.
        start: where to begin.
        batch: `Records.batch` of what was read before.

    Raises:
        ImportFileError: a record is whole and does not hold what its kind promises.
    """
    words = np.frombuffer(data, "<u4", len(data) // 4)
    offsets, stop = _chain(words, start // 4)
    damage = None
    if zlib.crc32(memoryview(data)[start : 4 * stop], _RESIDUE) != _RESIDUE:
        offsets, stop = _undamaged(data, words, offsets)
        damage = "a damaged record"
    elif words[stop:].any() or any(data[4 * len(words) :]):
        damage = "an unfinished record"
    kinds = words[offsets] >> KIND_SHIFT
    stepping = _STEPPING[np.minimum(kinds, len(_STEPPING) - 1)]
    return Records(
        stop=4 * stop,
        damage=damage,
        headers=tuple(_json(_payload(data, words, at)) for at in offsets[kinds == Kind.HEADER]),
        events=tuple(_json(_payload(data, words, at)) for at in offsets[kinds == Kind.EVENT]),
        rids=tuple(rid for at in offsets[kinds == Kind.RIDS].tolist() for rid in _rids(_payload(data, words, at))),
        iterations=_heads(words, offsets[stepping], _ITERATION),
        prefills=_heads(words, offsets[kinds == Kind.PREFILL], _PREFILL),
        switches=_heads(words, offsets[kinds == Kind.SWITCH], _SWITCH),
        **rows_of(data, offsets[stepping], words[offsets[stepping]], batch),
    )


# Whether a kind of record is that of an iteration; the last entry stands for all kinds beyond.
_STEPPING = np.isin(np.arange(16), (Kind.ITERATION, Kind.SHORT, Kind.PREFILL))


def _chain(words: Words, start: int) -> tuple[Ints, int]:
    """Word offsets of the records from `start` on, and of what follows the last of them.

    Records of one batch size follow each other by the hundred: after some equal ones, the rest of the run is
    found in one step.
    """
    quick, end = words.data, len(words)  # a memoryview, whose items are plain numbers and cheaper to read
    starts, lengths, counts = [], [], []
    at, previous, repeated = start, 0, 0
    while at < end:
        first = quick[at]
        length, count = first & LENGTH_MASK, 1
        if length < _SHORTEST or at + length > end:
            break
        repeated = repeated + 1 if first == previous else 0
        if repeated >= _REPEATED:
            same = words[at : min(at + _STRETCH * length, end - length + 1) : length] == first
            different = int(same.argmin())
            count = len(same) if same[different] else different
        starts.append(at)
        lengths.append(length)
        counts.append(count)
        at, previous = at + count * length, first
    many = np.array(counts, np.int64)
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(np.array(starts, np.int64), many) + within * np.repeat(np.array(lengths, np.int64), many), at


def _undamaged(data: bytes, words: Words, offsets: Ints) -> tuple[Ints, int]:
    """The offsets before the first record whose own checksum fails, and that record's."""
    ends = offsets + (words[offsets] & LENGTH_MASK)
    view = memoryview(data)
    whole = (zlib.crc32(view[4 * at : 4 * end], _RESIDUE) == _RESIDUE for at, end in zip(offsets, ends, strict=True))
    index = next(index for index, good in enumerate(whole) if not good)
    return offsets[:index], int(offsets[index])


def _heads(words: Words, offsets: Ints, dtype: np.dtype[np.void]) -> Heads:
    span = dtype.itemsize // 4
    _promise(words, offsets, span + 1)
    if not len(offsets):
        return np.empty(0, dtype)
    return sliding_window_view(words, span)[offsets].view(dtype).reshape(-1)


def _promise(words: Words, offsets: Ints, shortest: int) -> None:
    if ((words[offsets] & LENGTH_MASK) < shortest).any():
        raise ImportFileError(BROKEN)


def _payload(data: bytes, words: Words, at: int) -> bytes:
    return data[4 * at + 4 : 4 * (at + int(words[at] & LENGTH_MASK)) - 4]


def _json(payload: bytes) -> JsonObject:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ImportFileError(
            f"the trace has a text record that is not JSON ({error}); was it written by speckit?"
        ) from None
    if not isinstance(value, dict):
        raise ImportFileError("the trace has a text record that is not a JSON object; was it written by speckit?")
    return value


def _rids(payload: bytes) -> list[str]:
    try:
        return payload.rstrip(b"\xff").decode().split("\0")
    except UnicodeDecodeError as error:
        raise ImportFileError(f"the trace names requests in a way that cannot be read ({error})") from None
