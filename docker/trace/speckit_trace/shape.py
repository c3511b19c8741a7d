"""What an iteration's record depends on besides the iteration: how many requests are in it, and which."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any

from speckit_trace import layout
from speckit_trace.layout import GRAPH_BIT, HEAD, NO_ACCEPTED, PREFILL_HEAD, WORD_BYTES, first_word


class Frame:
    """Sizes and first words of the records of so many rows, and how their columns are packed.

    `no_accepted` and `no_flags` are the columns in which there is nothing to say.
    """

    __slots__ = (
        "full_first",
        "full_size",
        "no_accepted",
        "no_flags",
        "pack_requests",
        "pack_tokens",
        "padding",
        "prefill_first",
        "prefill_size",
        "short_first",
        "short_size",
    )

    def __init__(self, rows: int) -> None:
        tokens, requests = Struct(f"@{rows}I"), Struct(f"@{rows}H")
        self.pack_tokens, self.pack_requests = tokens.pack, requests.pack
        self.no_accepted, self.no_flags, self.padding = (
            bytes([NO_ACCEPTED]) * rows,
            bytes(rows),
            bytes(-rows % WORD_BYTES),
        )
        self.short_size = HEAD.size + tokens.size + rows + len(self.padding) + WORD_BYTES
        self.short_first = first_word(layout.SHORT, self.short_size)
        columns = tokens.size + requests.size + 2 * rows + WORD_BYTES
        self.full_size, self.prefill_size = HEAD.size + columns, PREFILL_HEAD.size + columns
        self.full_first = first_word(layout.ITERATION, self.full_size)
        self.prefill_first = first_word(layout.PREFILL, self.prefill_size)


frame = lru_cache(maxsize=1024)(Frame)


class Shape:
    """Requests that form a batch of some forward mode.

    `reqs` is a copy, because SGLang extends the list of a running batch in place; `only` is the request of a
    batch of one. `plain` and `graph` are the mode as it is recorded, without and with a CUDA graph. Short records
    of these requests may end up to `limit` in the stream's segment: 0 until that segment has a full one.
    """

    __slots__ = ("frame", "graph", "limit", "only", "plain", "reqs")

    def __init__(self, reqs: list[Any], mode: int) -> None:
        self.reqs = reqs[:]
        self.only = reqs[0] if len(reqs) == 1 else None
        self.plain = plain = int(mode)
        self.graph = plain | GRAPH_BIT
        self.limit = 0
        self.frame = frame(len(reqs))
