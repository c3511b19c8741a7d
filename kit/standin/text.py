"""Token ids, words and the text of one answer with its acceptance bits; a counter-based hash drives them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

from kit.units import Tokens

__all__ = ["BOS", "EOS", "FIRST_WORD", "VOCABULARY", "Floats", "Text", "detokenize", "tokenize", "uniforms", "words"]

BOS, EOS, FIRST_WORD = 1, 2, 3
VOCABULARY = 49_152
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_SYLLABLES = tuple(a + b for a in "bdfgklmnprstvz" for b in "aeiou")
_PIECES = re.compile(r"\w+|[^\w\s]")
Floats = npt.NDArray[np.float64]


def uniforms(key: int, *, streams: int, length: int) -> Floats:
    """Uniform numbers in [0, 1), shape (streams, length); entry (i, j) depends on key, i and j alone.

    SplitMix64 (Steele, Lea and Flood 2014) used as a hash of a counter; lengthening keeps what was there.
    """
    first = np.arange(1, streams + 1, dtype=np.uint64)[:, None] * np.uint64(2**32)
    counter: npt.NDArray[np.uint64] = np.add(first, np.arange(length, dtype=np.uint64))
    z = counter * _GAMMA + np.uint64(key & 0xFFFF_FFFF_FFFF_FFFF)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    # The upper 53 bits fill a double.
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(slots=True, eq=False)
class Text:
    """What follows one prompt: token ids, and per position how safely a draft of it is accepted.

    A draft of depth K at position s is accepted iff `margin[s] + shift * (K - 1)` is positive; with shift 0 the
    bit belongs to the position alone, which is what the nesting theorem needs (method.md 1.6).
    """

    tokens: list[int]
    margin: Floats
    shift: float = 0.0
    _runs: dict[int, list[int]] = field(default_factory=dict)

    def accepted(self, start: Tokens, *, depth: int) -> int:
        """Drafts accepted by a round of that depth which starts after `start` output tokens: 0 to `depth`."""
        if not depth:
            return 0
        # Without a shift all depths share one entry.
        runs = self._runs.get(depth if self.shift else 0)
        if runs is None:
            runs = self._runs[depth if self.shift else 0] = self._run_lengths(depth)
        return min(runs[start], depth)

    def first(self, ids: frozenset[int], *, after: Tokens = 0) -> int | None:
        """Position of the first token that is one of `ids`, behind `after` others; None when there is none."""
        return next((at for at, token in enumerate(self.tokens) if token in ids and at >= after), None)

    def after(self, done: Tokens) -> Text:
        """What is left behind `done` tokens."""
        return Text(self.tokens[done:], self.margin[done:], self.shift)

    def choices(self, since: Tokens, until: Tokens, *, top: int) -> list[list[list[float | int | None]]]:
        """The `top` likeliest tokens of each position as SGLang writes them: [log-probability, token id, no text].

        The second is 0.05 to 5.05 less likely than the first, by a hash of the token: this world has no ties.
        """
        found: list[list[list[float | int | None]]] = []
        for token in self.tokens[since:until]:
            gap = 0.05 + 5 * (token * 2_654_435_761 % 2**32) / 2**32
            best = -math.log1p(math.exp(-gap))
            found.append([[best - gap * rank, (token + rank) % VOCABULARY, None] for rank in range(top)])
        return found

    def _run_lengths(self, depth: int) -> list[int]:
        """Length of the run of accepted positions that begins at each position; the end counts as refused."""
        size = len(self.margin)
        position = np.arange(size)
        refused = np.where(self.margin + self.shift * (depth - 1) > 0, size, position)
        following = np.minimum.accumulate(refused[::-1])[::-1]
        runs: list[int] = (following - position).tolist()
        return runs


def tokenize(text: str) -> tuple[int, ...]:
    """Token ids of a text: one a word or mark, after a beginning-of-sequence token."""
    return BOS, *(FIRST_WORD + crc32(piece.encode()) % (VOCABULARY - FIRST_WORD) for piece in _PIECES.findall(text))


def detokenize(ids: list[int]) -> str:
    """A pronounceable word for every id; the special tokens have no text."""
    return "".join(words(ids))


def words(ids: list[int]) -> Iterator[str]:
    """The text of each id by itself."""
    return map(_word, ids)


@lru_cache(maxsize=VOCABULARY)
def _word(token: int) -> str:
    if token < FIRST_WORD:
        return ""
    first, rest = divmod(token, len(_SYLLABLES) ** 2)
    second, third = divmod(rest, len(_SYLLABLES))
    return f" {_SYLLABLES[first % len(_SYLLABLES)]}{_SYLLABLES[second]}{_SYLLABLES[third]}"
