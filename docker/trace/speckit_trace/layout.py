"""The bytes of a trace. docs/trace.md is the specification, this module its statement in code.

A trace is a sequence of segment files. A segment is a fixed header, then records, each a multiple of four
bytes: a word with kind and length, a payload, a checksum. Everything is little-endian.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import astuple, dataclass

MAGIC = b"SPKTRACE"
FORMAT_VERSION = 2
SUFFIX = ".spktrace"

# magic, format version, header bytes, segment number, stream, pid, checksum, monotonic ns, wall ns, dropped.
# `dropped` is the one live word of a segment: it changes after a stop and no checksum covers it.
SEGMENT_HEADER = struct.Struct("<8sHHI16sIIQQQ")
DROPPED = struct.Struct("<Q")
DROPPED_OFFSET = SEGMENT_HEADER.size - DROPPED.size
_CHECKSUM_OFFSET = 36

HEADER, RIDS, ITERATION = range(1, 4)
SWITCH, EVENT, SHORT, PREFILL = range(5, 9)  # 4 was another prefill, of format 1

WORD = struct.Struct("@I").pack
WORD_BYTES = 4

# first word, iteration, launch ns, ready ns, draft tokens, depth, mode and graph bit, running, waiting. In the
# machine's own order, because packing is then twice as fast; a machine of another order is refused at install.
_HEAD_FORMAT = "@IIQQHBBHH"
HEAD = struct.Struct(_HEAD_FORMAT)
# The same of a prefill, with its new and its cached tokens.
PREFILL_HEAD = struct.Struct(f"{_HEAD_FORMAT}II")
# A short record of one request, with its output tokens and accepted drafts.
ONE = struct.Struct(f"{_HEAD_FORMAT}IB3x")
# first word, iteration, monotonic ns, from, to, 1 if a result triggered it, unused, slot, moving average
_SWITCH = struct.Struct("<IIQBBBxId")

NO_DRAFTS = 0xFFFF
NO_DEPTH = 0xFF
NO_ACCEPTED = 0xFF
NO_SLOT = 0xFFFFFFFF
GRAPH_BIT = 0x80
MAX_REQUESTS = 0xFFFF  # different requests a segment can name: rows refer to them by a u16
SATURATED = 0xFFFF  # queue counts above this are written as this

FINISHED, RETRACTED, DECODING, CHUNK = 1, 2, 4, 8  # row flags

# The CRC-32 of any text followed by its own CRC-32. Seeding a record's checksum with it makes the CRC-32 of
# all records of a segment equal to this number exactly when every one of them is whole: one call proves a
# segment, and still each record proves itself.
RESIDUE = 0x2144DF1C

_WORDS_LIMIT = 1 << 24


def first_word(kind: int, size: int) -> int:
    """Kind in the top byte, length of the whole record in four-byte words below."""
    words = size >> 2
    if words >= _WORDS_LIMIT:
        raise ValueError(f"a record of {size} bytes is longer than the format allows")
    return kind << 24 | words


def sealed(body: bytes) -> bytes:
    """A record with its checksum."""
    return body + WORD(zlib.crc32(body, RESIDUE))


def segment_header(number: int, stream: bytes, pid: int, *, monotonic_ns: int, wall_ns: int) -> bytes:
    """The first 64 bytes of a segment; the checksum covers all of them but itself and the live word."""
    fields = (MAGIC, FORMAT_VERSION, SEGMENT_HEADER.size, number, stream, pid, 0, monotonic_ns, wall_ns, 0)
    blank = SEGMENT_HEADER.pack(*fields)[:DROPPED_OFFSET]
    checksum = zlib.crc32(blank).to_bytes(4, "little")
    return blank[:_CHECKSUM_OFFSET] + checksum + blank[_CHECKSUM_OFFSET + 4 :] + bytes(DROPPED.size)


def text_record(kind: int, text: str) -> bytes:
    """A record whose payload is UTF-8 text, padded with blanks."""
    payload = text.encode("utf-8", "backslashreplace")
    payload += b" " * (-len(payload) % 4)
    return sealed(WORD(first_word(kind, 8 + len(payload))) + payload)


def rids_record(rids: list[str]) -> bytes:
    """Names for the next request numbers of the segment: texts with zero bytes between them."""
    text = "\0".join(rids)
    if text.count("\0") != len(rids) - 1:
        text = "\0".join([rid.replace("\0", "\\0") for rid in rids])
    names = text.encode("utf-8", "backslashreplace")
    size = len(names) + 11 & -4
    body = WORD(first_word(RIDS, size)) + names + _NOT_TEXT[len(names) & 3]
    return body + WORD(zlib.crc32(body, RESIDUE))


# Up to the next word, bytes that no UTF-8 text contains.
_NOT_TEXT = (b"", b"\xff\xff\xff", b"\xff\xff", b"\xff")


@dataclass(frozen=True)
class Switch:
    """A change of depth: in or after which iteration, when, from, to, and what decided it."""

    number: int
    monotonic_ns: int
    before: int
    after: int
    by_result: bool
    slot: int
    average: float

    def record(self) -> bytes:
        """The fields in their order."""
        return sealed(_SWITCH.pack(_SWITCH_FIRST, *astuple(self)))


_SWITCH_FIRST = first_word(SWITCH, _SWITCH.size + 4)
