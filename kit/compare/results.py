"""What a comparison of two runs consists of: ratios second / first, each with its interval or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass

from kit.compare.fields import Factor, FieldDifference
from kit.records import Origin
from kit.stats import Estimate, SpeedWord
from kit.verdict import Heading

__all__ = ["COMPARISON_VERSION", "ArmRatio", "Consequence", "DepthTime", "RunComparison", "Side", "Tax"]

COMPARISON_VERSION = 1
"""Version of this tree as JSON. History: 1 = first form."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs. `label` is its value of the factor; `cells` of which `valid` may decide.

    `sm_mhz` and `temperature_c` are medians over its cells and GPUs; None where nobody sampled them.
    """

    label: str
    run_id: str
    spec_name: str
    spec_hash: str
    origin: Origin
    created_utc: str
    kit_version: str
    headings: tuple[Heading, ...]
    cells: int
    valid: int
    sm_mhz: float | None
    temperature_c: float | None


@dataclass(frozen=True, slots=True)
class ArmRatio:
    """One arm at one concurrency, window throughput of valid cells.

    `ratio` is second / first, paired over blocks: a block sends the same prompts in both runs. `gain` is the same of
    arm / baseline: what slows down a whole run cancels in it; None for a baseline. TPOT uses every cell and decides
    nothing. Words test against 1 +- the noise threshold, Holm-adjusted over all that are printed.
    """

    arm: str
    concurrency: int
    first_tok_s: Estimate
    second_tok_s: Estimate
    ratio: Estimate
    word: SpeedWord
    gain: Estimate | None
    gain_word: SpeedWord | None
    tpot_ratio: Estimate


@dataclass(frozen=True, slots=True)
class DepthTime:
    """Traced time of an iteration of one arm at one K (None: no speculation) and batch size.

    Each launch gives its median; intervals are over launches. `stretch` is that time over the baseline's at the same
    batch, paired over blocks; None for a baseline.
    """

    arm: str
    depth: int | None
    batch_size: int
    iterations: int
    first_ms: Estimate
    second_ms: Estimate
    ratio: Estimate
    first_stretch: Estimate | None
    second_stretch: Estimate | None


@dataclass(frozen=True, slots=True)
class Tax:
    """What speculating costs an iteration before the first draft, in ms, from the traces at one batch size.

    Each block gives a line through the times of its chains at `depths`; the tax is where the line meets K = 0, less the
    baseline's time, and `per_draft` its slope.
    """

    batch_size: int
    depths: tuple[int, ...]
    first_ms: Estimate
    second_ms: Estimate
    difference_ms: Estimate
    ratio: Estimate
    first_per_draft_ms: Estimate
    second_per_draft_ms: Estimate
    per_draft_ratio: Estimate


@dataclass(frozen=True, slots=True)
class Consequence:
    """An effective flag that nobody set and that differs between the servers of one arm; values as JSON text."""

    arm: str
    flag: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs that differ in one factor. `noted` differences are shown and refuse nothing."""

    version: int
    factor: Factor
    answer: str
    first: Side
    second: Side
    factor_fields: tuple[FieldDifference, ...]
    consequences: tuple[Consequence, ...]
    noted: tuple[FieldDifference, ...]
    noise_threshold: float
    level: float
    arms: tuple[ArmRatio, ...]
    depth_times: tuple[DepthTime, ...]
    taxes: tuple[Tax, ...]
    limits: tuple[str, ...]
