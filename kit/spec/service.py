"""What a spec may ask of service: latencies that a request has to keep, and load that arrives by the clock."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from kit.spec.strict import StrictModel

__all__ = ["Arrival", "Limits"]


class Limits(StrictModel):
    """Latencies within which a request counts as good; all that are stated have to hold."""

    ttft_s: PositiveFloat | None = None
    """Longest time to the first token."""
    tpot_s: PositiveFloat | None = None
    """Longest time per output token after it."""
    e2e_s: PositiveFloat | None = None
    """Longest time to the end of the answer."""

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if self.ttft_s is None and self.tpot_s is None and self.e2e_s is None:
            raise ValueError("states no limit; give ttft_s, tpot_s or e2e_s, or leave load.limits out")
        return self


class Arrival(StrictModel):
    """Load that arrives by the clock, whatever the server does, after the closed loops of a launch."""

    process: Literal["poisson", "constant"] = "poisson"
    """Independent exponential gaps, or equal ones."""
    rates: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)]
    """Requests offered a second, one cell for each value."""
    requests: PositiveInt = 64
    """Requests of a cell."""
    seed: NonNegativeInt = 0
    """Seed of the gaps; every arm gets the same."""

    @model_validator(mode="after")
    def _rates_are_distinct(self) -> Self:
        if len(set(self.rates)) != len(self.rates):
            raise ValueError(f"rates lists a rate twice: {list(self.rates)}")
        return self
