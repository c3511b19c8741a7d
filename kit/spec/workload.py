"""Which prompts a spec sends, how many of each class and in which order, and how much it asks for."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from kit.spec.strict import StrictModel

__all__ = ["Workload"]

MAX_SHARE_ERROR: Final = 1e-9

Share = Annotated[float, Field(gt=0, lt=1)]


class Workload(StrictModel):
    """Which prompts are sent and how much is asked for."""

    files: tuple[str, ...] = Field(min_length=1)
    """Prompt files (JSONL) beside the spec."""
    classes: tuple[str, ...] | None = None
    """Workload classes to use, in equal shares; null uses every class of the files."""
    quotas: Annotated[dict[str, PositiveInt | Share], Field(min_length=1)] | None = None
    """Prompts of each class in the whole run, all as counts or all as shares; null takes equal shares."""
    mix: Literal["interleaved", "phases", "homogeneous"] = "interleaved"
    """Order of the classes: evenly mixed, one after the other within every cell, or one class a block."""
    prompts: PositiveInt
    """Distinct prompts in the whole run; each block gets its own part."""
    seed: NonNegativeInt = 0
    """Seed of selection, order and output lengths."""
    min_output_tokens: PositiveInt = 128
    """Shortest output asked for; lengths are drawn per prompt, the same for every arm."""
    max_output_tokens: PositiveInt = 256
    """Longest output asked for."""
    ignore_eos: bool = True
    """Whether generation runs past the end-of-sequence token, so that lengths are the ones asked for."""
    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy; losslessness and gate v2 need greedy."""

    @model_validator(mode="after")
    def _lengths_are_ordered(self) -> Self:
        if self.min_output_tokens > self.max_output_tokens:
            raise ValueError(
                f"min_output_tokens {self.min_output_tokens} exceeds max_output_tokens {self.max_output_tokens}"
            )
        return self

    @model_validator(mode="after")
    def _quotas_add_up(self) -> Self:
        if self.quotas is None:
            return self
        if self.mix == "homogeneous":
            raise ValueError("quotas and mix: homogeneous both say how much of each class is sent; leave one out")
        if self.classes is not None and set(self.classes) != set(self.quotas):
            raise ValueError(
                f"quotas are for {', '.join(self.quotas)} and classes has {', '.join(self.classes)}; leave classes out"
            )
        counted = {isinstance(value, int) for value in self.quotas.values()}
        total, wanted = sum(self.quotas.values()), self.prompts if counted == {True} else 1
        if len(counted) > 1 or abs(total - wanted) > MAX_SHARE_ERROR:
            raise ValueError(
                f"quotas add up to {total:g}; give counts that add up to prompts ({self.prompts}), or shares to 1"
            )
        return self
