"""What differs between the SGLang versions that can be imitated, as their contracts state it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.contract import Contract

__all__ = ["DEFAULT_VERSION", "Dialect"]

DEFAULT_VERSION = "0.5.15.post1"
# Not in the contracts: read in `Scheduler._reqs_finishing_inflight`, which the versions before do not have.
_FORESEE_LENGTH = ("0.5.23",)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one version behaves.

    `strict`: an unknown sampling key is a 400 with its name, not an exception. `stop_first`: an end of sequence goes
    before the length limit. `foresees_length`: no ghost where the limit is sure to be reached.
    `newer`: it says more about itself than 0.5.15. `weight_versions`: the
    last `meta_info` has that key. `buffer_by_launch`: graphs of an adaptive launch fit K at launch, not the largest.
    `speculative_keys`: names of `meta_info` about speculation. `endpoints`: every path there is.
    """

    version: str
    strict: bool
    stop_first: bool
    foresees_length: bool
    newer: bool
    weight_versions: bool
    buffer_by_launch: bool
    speculative_keys: frozenset[str]
    endpoints: frozenset[str]

    @classmethod
    def of(cls, contract: Contract) -> Dialect:
        """The dialect of a contract's version."""
        facts: dict[str, Any] = dict(contract.facts)
        order = facts["finish_order"]
        return cls(
            version=contract.version,
            strict=facts["unknown_sampling_key"]["status"] == 400,
            stop_first=order.index("stop token") < order.index("length"),
            foresees_length=contract.version in _FORESEE_LENGTH,
            newer="/ready" in contract.endpoints,
            weight_versions="weight_versions" in facts["meta_info"]["every"],
            buffer_by_launch=facts["adaptive_logits_rows"]["sized_for"] == "launch steps",
            speculative_keys=frozenset(facts["speculative_meta_info"]["sent"]),
            endpoints=frozenset(contract.endpoints),
        )
