"""Names for the units used in every signature: seconds and tokens inside, milliseconds only in text."""

from __future__ import annotations

from typing import TypeAlias

Seconds: TypeAlias = float
Nanoseconds: TypeAlias = int
Tokens: TypeAlias = int
TokensPerSecond: TypeAlias = float

MS_PER_S = 1_000
NS_PER_S = 1_000_000_000
