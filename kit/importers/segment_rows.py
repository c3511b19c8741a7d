"""Rows of the iterations in a trace segment, from bytes to columns; docs/trace.md, section 5, is their format."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from kit.errors import ImportFileError
from kit.records import Bools, Ints

__all__ = ["BROKEN", "KIND_SHIFT", "LENGTH_MASK", "NOBODY", "Batch", "Kind", "RowFlag", "Words", "rows_of"]

BROKEN = "the trace has a record of a length that its kind cannot have; was it written by speckit?"

KIND_SHIFT, LENGTH_MASK = 24, 0xFFFFFF
_HEAD_WORDS, _MORE_IN_PREFILLS, _ROW_WORDS = 8, 2, 2  # of a full iteration

Words = npt.NDArray[np.uint32]
Batch = npt.NDArray[np.uint16]

NOBODY: Batch = np.empty(0, np.uint16)


class Kind(IntEnum):
    """What a record is; a kind that is not here is skipped."""

    HEADER = 1
    RIDS = 2
    ITERATION = 3
    SWITCH = 5
    EVENT = 6
    SHORT = 7
    PREFILL = 8


class RowFlag(IntFlag):
    """What is special about a row."""

    FINISHED = 1
    RETRACTED = 2
    DECODING = 4  # decodes in a batch that prefills
    CHUNK = 8  # a part of its prompt is still to come


def rows_of(data: bytes, offsets: Ints, first: Words, batch: Batch) -> dict[str, Any]:
    """The four columns behind each iteration's head, each as one column through all iterations.

    Bytes of a column are found by a number for each row: where its first byte would be, were this row the first of
    all; so that one addition gives the row's own.
    """
    rows = _row_counts(first)
    short = first >> KIND_SHIFT == Kind.SHORT
    head = _HEAD_WORDS + _MORE_IN_PREFILLS * (first >> KIND_SHIFT == Kind.PREFILL)
    body = 4 * (offsets + head)  # byte at which the columns of an iteration begin
    begin = np.cumsum(rows) - rows
    index = np.arange(rows.sum())

    def column(dtype: str, at: Ints) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize
        values: npt.NDArray[Any] = np.frombuffer(data, dtype, len(data) // size)
        return values[np.repeat(at // size - begin, rows) + index] if len(values) else np.empty(0, dtype)

    known, spelt = _spelt_batches(data, body, rows, short, batch)
    accepted = body + (6 - 2 * short) * rows
    flags = column("u1", np.where(short, 0, body + 7 * rows))
    flags[np.repeat(short, rows)] = 0
    rid = known[np.repeat(spelt - begin, rows) + index]
    return {
        "rows": rows,
        "tokens_before": column("<u4", body),
        "rid": rid,
        "accepted": column("u1", accepted),
        "flags": flags,
        "batch": rid[len(rid) - int(rows[-1]) :].copy() if len(rows) else batch,
    }


def _spelt_batches(data: bytes, body: Ints, rows: Ints, short: Bools, batch: Batch) -> tuple[Batch, Ints]:
    """The requests of full iterations one after the other, behind `batch`; where those of each iteration begin."""
    spelt = np.where(short, 0, rows)
    begin = len(batch) + np.cumsum(spelt) - spelt
    requests: Batch = np.frombuffer(data, "<u2", len(data) // 2)
    index = np.arange(len(batch), len(batch) + int(spelt.sum()))
    known = np.concatenate([batch, requests[np.repeat((body + 4 * rows) // 2 - begin, spelt) + index]])
    last = np.maximum.accumulate(np.where(short, -1, np.arange(len(rows))))  # full one, -1 for none in this piece
    if (rows != np.where(last < 0, len(batch), rows[last])).any():
        raise ImportFileError("the trace has an iteration of a batch it does not name; was it written by speckit?")
    return known, np.where(last < 0, 0, begin[last])


def _row_counts(first: Words) -> Ints:
    """Rows of each iteration, by the length of its record."""
    kinds, words = first >> KIND_SHIFT, (first & LENGTH_MASK).astype(np.int64)
    short = words - _HEAD_WORDS - 1
    full = short - _MORE_IN_PREFILLS * (kinds == Kind.PREFILL)
    rows = np.where(kinds == Kind.SHORT, short * 4 // 5, full // _ROW_WORDS)
    need = np.where(kinds == Kind.SHORT, short - (5 * rows + 3) // 4, full - _ROW_WORDS * rows)
    if (rows < 0).any() or need.any():
        raise ImportFileError(BROKEN)
    return rows
