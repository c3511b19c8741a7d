"""Worlds: what the stand-in's model, draft and hardware are like. Read from YAML, frozen, without clock or I/O.

A world fixes a greedy text for every prompt, one acceptance bit per text position (so acceptance belongs to the
text and not to K, method.md 1.6), and the time of an iteration. Everything random is a counter-based hash of
(world seed, prompt, position): any position can be computed without those before it, in every arm alike.
"""

from __future__ import annotations

import math
import random
from functools import cached_property
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kit.errors import SpecError
from kit.standin.text import EOS, FIRST_WORD, VOCABULARY, Floats, Text, tokenize, uniforms
from kit.units import Seconds, Tokens

__all__ = ["Cost", "Draft", "Noise", "TextProcess", "World", "load_world", "presets"]

Share = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    """Settings of `kit.spec`, whose import would be a third of the start-up time."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TextProcess(_Part):
    """How long answers are when nobody stops them."""

    shortest: int = Field(default=24, ge=1)
    """Fewest tokens of an answer, end-of-sequence included."""
    longest: int = Field(default=48, ge=1)
    """Most tokens of an answer; lengths are uniform between the two."""


class Draft(_Part):
    """Which tokens the draft gets right: two regimes inside each text, in two kinds of prompts."""

    easy_prompts: Share = 0.5
    """Share of prompts of the easy kind, among those without an easy word."""
    easy_words: tuple[str, ...] = ()
    """A prompt that holds one of these words (case counts) is of the easy kind: how a class of prompts gets its own."""
    easy_text: tuple[Share, Share] = (0.7, 0.3)
    """Share of easy text in an easy and in a hard prompt."""
    regime_tokens: float = Field(default=16.0, ge=1)
    """Mean length of a stretch of easy or hard text."""
    accept: tuple[Share, Share] = (0.85, 0.4)
    """Chance that a token of easy and of hard text is accepted."""
    shift: float = Field(default=0.0, ge=-1, le=1)
    """Added to both chances at K = 7, in proportion to K - 1 elsewhere; 0 makes acceptance invariant in K."""
    divergence: Share = 0.0
    """Chance per token that a speculating server leaves the greedy text for good; 0 is lossless."""


class Cost(_Part):
    """Time of an iteration of n rows at draft length K: the cost model of method.md 3.1, and of prefill."""

    base_ms: Milliseconds
    """c0: streaming the weights."""
    position_ms: Milliseconds
    """c1: each verified position; a row has K + 1 of them in a chain."""
    draft_ms: Milliseconds
    """c2: each of the K serial draft steps."""
    speculate_ms: Milliseconds
    """c3: fixed tax of a speculating server."""
    row_ms: Milliseconds
    """c4: each row."""
    prefill_ms: Milliseconds
    """Fixed time of a prefill."""
    prefill_token_ms: Milliseconds
    """Each prompt token."""

    def decode_s(self, rows: int, *, depth: int | None, draft_tokens: int = 1) -> Seconds:
        """Seconds of a decode iteration: `depth` is K, None without speculation; `draft_tokens` a row are verified.

        K = 0 still pays the tax, because the server still verifies and still feeds its draft.
        """
        tax_ms = 0.0 if depth is None else self.speculate_ms + self.draft_ms * depth
        rows_ms = (self.position_ms * draft_tokens + self.row_ms) * rows
        return (self.base_ms + rows_ms + tax_ms) / 1e3

    def prefill_s(self, tokens: Tokens) -> Seconds:
        """Seconds of a prefill of that many prompt tokens."""
        return (self.prefill_ms + self.prefill_token_ms * tokens) / 1e3


class Noise(_Part):
    """How measured times scatter, as standard deviations of their logarithm."""

    launch_sd: float = Field(default=0.015, ge=0)
    """From server start to server start; one factor for the whole launch."""
    iteration_sd: float = Field(default=0.02, ge=0)
    """From iteration to iteration."""
    drift: float = Field(default=0.0, ge=-1, le=1)
    """Added to the logarithm at each further launch: a host that warms up through a run."""


class World(_Part):
    """Everything that is true about a simulated model, draft and host."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    """Name of the preset."""
    about: str
    """One line for the reader of a report."""
    seed: int
    """Seed of texts and draft."""
    text: TextProcess = TextProcess()
    """Lengths."""
    draft: Draft = Draft()
    """Acceptance."""
    cost: Cost
    """Times."""
    noise: Noise = Noise()
    """Scatter of times."""
    startup_s: float = Field(default=0.2, ge=0)
    """From process start to warm-up."""

    def answer(self, prompt: tuple[int, ...], *, length: Tokens, speculates: bool, sample: int = 0) -> Text:
        """The first `length` positions (2 or more) of what follows `prompt` (token ids).

        `speculates` matters only in a world with divergence; `sample` is 0 for greedy decoding and any other
        number for one draw at a temperature.
        """
        hashed = uniforms(self._key(prompt, sample), streams=7, length=length)
        (kind, end, *_), word, switch, regime, luck, leave, other = hashed
        tokens = _words(word)
        if speculates and self.draft.divergence:
            left = np.maximum.accumulate(leave < self.draft.divergence)
            tokens[left] = _words(other[left])
        last = self.text.shortest - 1 + int(end * (self.text.longest - self.text.shortest + 1))
        if last < length:
            tokens[last] = EOS
        # Each switch begins a stretch of text, whose regime is drawn at its first position.
        position = np.arange(len(switch))
        stretch = np.maximum.accumulate(position * (switch * self.draft.regime_tokens < 1))
        favoured = kind < self.draft.easy_prompts or not self._easy_ids.isdisjoint(prompt)
        easy = regime[stretch] < self.draft.easy_text[0 if favoured else 1]
        return Text(
            tokens=tokens.tolist(), margin=np.where(easy, *self.draft.accept) - luck, shift=self.draft.shift / 6
        )

    def launch_factor(self, launch_seed: int) -> float:
        """What every iteration of this launch is multiplied by."""
        scatter = random.Random(f"launch {launch_seed}").gauss(0.0, self.noise.launch_sd)
        return math.exp(scatter + self.noise.drift * launch_seed)

    @cached_property
    def _easy_ids(self) -> frozenset[int]:
        return frozenset(token for word in self.draft.easy_words for token in tokenize(word)[1:])

    def _key(self, prompt: tuple[int, ...], sample: int) -> int:
        salt = str(self.seed).encode()
        digest = blake2b(np.asarray(prompt, np.int64).tobytes(), digest_size=8, key=salt)
        return int.from_bytes(digest.digest(), "little") ^ (sample << 1)


def _words(share: Floats) -> npt.NDArray[np.int64]:
    return FIRST_WORD + (share * (VOCABULARY - FIRST_WORD)).astype(np.int64)


def presets() -> tuple[str, ...]:
    """Names of the worlds that come with the kit."""
    files = resources.files("kit.standin").joinpath("worlds").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def load_world(name: str) -> World:
    """The world of that preset name, or in that YAML file. Raises SpecError when it is missing or wrong."""
    try:
        if name in presets():
            text = resources.files("kit.standin").joinpath("worlds", f"{name}.yaml").read_text("utf-8")
        else:
            text = Path(name).read_text("utf-8")
        return World.model_validate(yaml.safe_load(text))
    except OSError as error:
        known = ", ".join(presets())
        raise SpecError(f"world {name}: cannot be read ({error.strerror}); name a file or one of {known}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"world {name}: not YAML ({str(error).splitlines()[0]}); fix the file") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SpecError(f"world {name}: {where}: {first['msg']}; see the presets in kit/standin/worlds") from None
