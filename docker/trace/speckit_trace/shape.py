"""What an iteration's record depends on besides the iteration: which requests are in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from speckit_trace import layout
from speckit_trace.layout import ITERATION_BYTES, ITERATION_HEAD, NO_ACCEPTED, ROW_BYTES, first_word
from speckit_trace.stream import Stream

# Bytes of the record, its first word, packers of its head with the first column and of the second, and the
# other two columns when nothing was drafted and nothing is to be flagged.
_Frame = tuple[int, int, Callable[..., bytes], Callable[..., bytes], bytes, bytes]


class Shape:
    """Requests that form a batch, named in a stream's segment. Valid as long as `segment` is the stream's.

    `reqs` is a copy, because SGLang extends the list of a running batch in place. `outputs` are the requests'
    own lists of output tokens: SGLang gives a request a new one only between a retraction and the prefill
    that follows it, and a shape is not used across a prefill.
    """

    __slots__ = ("column", "first", "no_accepted", "no_flags", "outputs", "pack", "reqs", "segment", "size")

    def __init__(self, reqs: list[Any], stream: Stream) -> None:
        self.reqs = reqs[:]
        self.outputs = [r.output_ids for r in reqs]
        self.size, self.first, self.pack, pack_numbers, self.no_accepted, self.no_flags = _frame(len(reqs))
        numbers = stream.numbers
        try:
            self.column = pack_numbers(*[numbers[r.rid] for r in reqs])
        except KeyError:
            stream.name([r.rid for r in reqs], self.size)
            self.column = pack_numbers(*[numbers[r.rid] for r in reqs])
        self.segment = stream.segment


@lru_cache(maxsize=1024)
def _frame(rows: int) -> _Frame:
    size = ITERATION_BYTES + ROW_BYTES * rows
    packers = Struct(f"{ITERATION_HEAD.format}{rows}I").pack, Struct(f"@{rows}H").pack
    return size, first_word(layout.ITERATION, size), *packers, bytes([NO_ACCEPTED]) * rows, bytes(rows)
