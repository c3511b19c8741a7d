"""One request on its way through the engine: what it asked for, what it has produced, how it ends. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kit.standin.text import Text
from kit.units import Tokens

__all__ = ["Request"]


@dataclass(slots=True, eq=False)
class Request:
    """One request and its progress.

    `stop_at` is the position of the token that ends it, None without one; `matched` is what the finish reason names
    instead of that token (a stop string), `trims` whether the text loses what matched. `stop_first` says that an end
    inside the length limit goes before the limit; 0.5.15 looks at the limit first. `runs_to_limit` requests are known
    to need all their tokens, because they ignore the end of sequence.
    """

    rid: str
    prompt_tokens: Tokens
    text: Text
    max_new_tokens: Tokens
    stop_at: int | None = None
    matched: str | None = None
    trims: bool = True
    stop_first: bool = False
    runs_to_limit: bool = True
    cached_tokens: Tokens = 0
    top_logprobs: int = 0
    told_prompt: tuple[int, ...] = ()
    produced: Tokens = 0
    histogram: list[int] = field(default_factory=list)
    retracted: bool = False
    retractions: int = 0
    finish: dict[str, Any] | None = None
    abort: str | None = None

    @property
    def used_tokens(self) -> Tokens:
        """Tokens that it holds in the KV pool while it runs."""
        return self.prompt_tokens + self.produced

    @property
    def ended_in_queue(self) -> bool:
        """Whether it was aborted before it ran, or between a retraction and its next prefill."""
        return self.finish is not None and self.finish["type"] == "abort" and self.abort is None

    def reserved_tokens(self, share: float) -> Tokens:
        """Tokens of the KV pool that it may come to need, if it makes only `share` of the tokens left to it."""
        return self.used_tokens + math.ceil(share * (self.max_new_tokens - self.produced))

    def next_round_tokens(self, width: int) -> Tokens:
        """Tokens that it holds once the round under way and the one after it have each verified `width` of them."""
        return self.used_tokens + min(2 * width, self.max_new_tokens - self.produced)

    def count_round(self, accepted: int) -> None:
        """Add a verify round to the histogram, which grows on demand."""
        self.histogram.extend([0] * (accepted + 1 - len(self.histogram)))
        self.histogram[accepted] += 1

    def extend(self, count: Tokens) -> None:
        """Take up to `count` further tokens and finish if they end it."""
        total = self.produced + count
        if self.abort is not None:
            self.produced = min(total, self.max_new_tokens)
            self.finish = {"type": "abort", "message": self.abort, "status_code": None, "err_type": None}
        elif self.stop_first and self._stops(min(total, self.max_new_tokens)):
            self._stop()
        elif total >= self.max_new_tokens:
            self.produced = self.max_new_tokens
            self.finish = {"type": "length", "length": self.max_new_tokens}
        elif self._stops(total):
            self._stop()
        else:
            self.produced = total

    def reject(self, message: str, **details: Any) -> None:
        """End it in the queue, with the `details` of its finish reason."""
        self.finish = {"type": "abort", "message": message} | details

    def _stops(self, total: Tokens) -> bool:
        return self.stop_at is not None and self.stop_at < total

    def _stop(self) -> None:
        at = self.stop_at or 0
        self.produced = at + 1
        self.finish = {"type": "stop", "matched": self.matched or self.text.tokens[at]}
