"""What the two gates together allow to be reported: the pre-registered table (method 2.6) as data.

v1 decides, v2 explains and can only withhold: no word of v2 releases the curve gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from kit.stats.gates import GateWord

__all__ = ["Disclosure", "GateReading", "GateSentence", "read_gates"]


class Disclosure(StrEnum):
    """How an oracle may appear."""

    REPORTED = "reported"
    FLAGGED = "reported, flagged"
    SECONDARY = "may be reported, labelled secondary"
    OPTIONAL = "optional"
    WITHHELD = "not reported"
    VETOED = "not reported (veto)"


class GateSentence(StrEnum):
    """Which sentence explains the pair of verdicts; the report owns the wording."""

    STILL = "curve does not move; drafts invariant"
    STILL_UNALIGNED = "curve does not move; alignment evidence missing"
    MASKED = "two effects cancel: the draft depends on K and selection hides it"
    BOUNDARIES = "the curve moves because K changes which positions are round starts"
    DRAFT_DEPENDS = "the draft itself depends on K (or on numerics: see the control)"
    MOVED = "moved; cause not established"
    TOO_FEW = "not enough data"


@dataclass(frozen=True, slots=True)
class GateReading:
    """What is reported of the curve oracle (A) and the replay oracle (B), and why."""

    curve_oracle: Disclosure
    replay_oracle: Disclosure
    sentence: GateSentence
    functional_blocks: bool = False


_PASS, _FAIL, _OPEN = GateWord.PASS, GateWord.FAIL, GateWord.INCONCLUSIVE
_NO = Disclosure.WITHHELD

TABLE: Final[Mapping[tuple[GateWord, GateWord], GateReading]] = MappingProxyType(
    {
        (_PASS, _PASS): GateReading(Disclosure.REPORTED, Disclosure.OPTIONAL, GateSentence.STILL),
        (_PASS, _OPEN): GateReading(Disclosure.FLAGGED, _NO, GateSentence.STILL_UNALIGNED),
        (_PASS, _FAIL): GateReading(Disclosure.VETOED, _NO, GateSentence.MASKED),
        (_FAIL, _PASS): GateReading(_NO, Disclosure.SECONDARY, GateSentence.BOUNDARIES),
        (_FAIL, _FAIL): GateReading(_NO, _NO, GateSentence.DRAFT_DEPENDS),
        (_FAIL, _OPEN): GateReading(_NO, _NO, GateSentence.MOVED),
        (_OPEN, _PASS): GateReading(_NO, Disclosure.SECONDARY, GateSentence.TOO_FEW),
        (_OPEN, _FAIL): GateReading(_NO, _NO, GateSentence.TOO_FEW),
        (_OPEN, _OPEN): GateReading(_NO, _NO, GateSentence.TOO_FEW),
    }
)


def read_gates(v1: GateWord, *, v2: GateWord, functional_within: bool) -> GateReading:
    """The table's entry; a functional error whose upper limit is beyond its own limit withholds the curve gap too."""
    reading = TABLE[v1, v2]
    released = reading.curve_oracle in (Disclosure.REPORTED, Disclosure.FLAGGED)
    if functional_within or not released:
        return reading
    return replace(reading, curve_oracle=Disclosure.WITHHELD, functional_blocks=True)
