"""A look at the prompts before anything is measured: load that means nothing is declared, not refused.

Acceptance belongs to the content. Random tokens understate it, one paragraph over and over is its ceiling; both are
good for the shape of a load and for no statement about speculation.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from kit.load.workload import Prompt
from kit.records import SYNTHETIC

__all__ = ["doubtful_content"]

# Words of any natural language, and those of code, repeat: the ten most frequent make up a fifth of a text or more.
# Tokens drawn at random from a vocabulary share next to nothing.
MIN_WORDS: Final = 300
MIN_COMMON_SHARE: Final = 0.05
# Scripts without spaces make one word of a whole sentence; there, characters are counted instead.
MAX_WORD: Final = 20
COMMON: Final = 10
# Prose shrinks to about a half, a paragraph that is repeated to almost nothing.
MIN_CHARACTERS: Final = 400
MAX_REPEATED_RATIO: Final = 0.15
# Texts that differ in numbers alone are one prompt.
MIN_ALIKE: Final = 0.5

_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"\d+")


def doubtful_content(prompts: Sequence[Prompt]) -> tuple[str, ...]:
    """One sentence for each class whose texts are random, repeat themselves, or are all the same."""
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for prompt in prompts:
        classes[prompt.prompt_class].append(prompt.text)
    return tuple(
        f"{SYNTHETIC}{name} {what}; no claim about speculation follows from it"
        for name, texts in classes.items()
        for what in _signs(texts)
    )


def _signs(texts: Sequence[str]) -> Iterator[str]:
    words = _words(_bodies(texts))
    common = sum(count for _, count in Counter(words).most_common(COMMON))
    if len(words) >= MIN_WORDS and common < MIN_COMMON_SHARE * len(words):
        yield f"looks like random tokens (its {COMMON} most frequent words make up {common / len(words):.1%})"
    repeated = sum(_repeats_itself(text) for text in texts)
    if 2 * repeated > len(texts):
        yield f"repeats itself within {repeated} of {len(texts)} prompts"
    long = [_NUMBER.sub("", text) for text in texts if len(text) >= MIN_CHARACTERS]
    alike = max(Counter(long).values(), default=0)
    if alike > 1 and alike > MIN_ALIKE * len(texts):
        yield f"is one prompt over again in {alike} of {len(texts)} cases"


def _words(texts: Sequence[str]) -> list[str]:
    words = [word for text in texts for word in _WORD.findall(text)]
    characters = sum(map(len, words))
    return [character for word in words for character in word] if characters > MAX_WORD * len(words) else words


def _bodies(texts: Sequence[str]) -> list[str]:
    """The texts without what all of them begin and end with: a chat format is no content."""
    if len(texts) < 2:
        return list(texts)
    head = _shared(texts)
    tail = _shared([text[head:][::-1] for text in texts])
    return [text[head : len(text) - tail] for text in texts]


def _shared(texts: Sequence[str]) -> int:
    """Characters that all texts begin with; the first and the last in order share the fewest."""
    first, last = min(texts), max(texts)
    return next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _repeats_itself(text: str) -> bool:
    data = text.encode()
    return len(data) >= MIN_CHARACTERS and len(zlib.compress(data)) < MAX_REPEATED_RATIO * len(data)
