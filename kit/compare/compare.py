"""Two runs to a comparison, on one screen: refuse, judge both, pair their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from kit.analysis import arm_server_infos, server_differences, spec_of
from kit.checks import CellState
from kit.compare.costs import depth_times, taxes
from kit.compare.fields import Differences, Factor, differences
from kit.compare.ratios import arm_ratios
from kit.compare.results import COMPARISON_VERSION, ArmRatio, Consequence, RunComparison, Side
from kit.compare.side import Measured
from kit.errors import ComparisonRefused
from kit.records import Origin, RunFacts
from kit.sglang import effective_config
from kit.stats import SpeedWord
from kit.verdict import judge

__all__ = ["compare"]

MAX_CLOCK_DIFFERENCE = 0.02


def compare(first: RunFacts, second: RunFacts, *, factor: Factor) -> RunComparison:
    """The second run against the first. ComparisonRefused when they differ in anything but `factor`."""
    found = differences(first, second, factor=factor)
    consequences = tuple(_consequences(first, second))
    _refuse(first, second, found, factor=factor, consequences=consequences)
    mine, theirs = (Measured(facts, judge(facts)) for facts in (first, second))
    labels = _labels(first, second, factor)
    sides = _side(mine, labels[0]), _side(theirs, labels[1])
    arms = arm_ratios(mine, theirs)
    return RunComparison(
        version=COMPARISON_VERSION,
        factor=factor,
        answer=_answer(labels, arms),
        first=sides[0],
        second=sides[1],
        factor_fields=found.of_factor,
        consequences=consequences,
        noted=found.noted,
        noise_threshold=mine.spec.decision.noise_threshold,
        level=mine.spec.decision.confidence_level,
        arms=arms,
        depth_times=depth_times(mine, theirs),
        taxes=taxes(mine, theirs),
        limits=tuple(_limits(factor, *sides)),
    )


def _consequences(first: RunFacts, second: RunFacts) -> Iterator[Consequence]:
    """What servers of the same arm really ran with and differ in, beyond what was asked of them."""
    infos = [arm_server_infos(facts.launches) for facts in (first, second)]
    for arm in spec_of(first).arms:
        one, other = (info.get(arm.name) for info in infos)
        if one is not None and other is not None:
            for flag, mine, theirs in server_differences(spec_of(first), one, other):
                if flag != "version":  # compared already, with what the spec asks for
                    yield Consequence(arm.name, flag, mine, theirs)


def _refuse(
    first: RunFacts,
    second: RunFacts,
    found: Differences,
    *,
    factor: Factor,
    consequences: Sequence[Consequence],
) -> None:
    if first.header.run_id == second.header.run_id:
        raise ComparisonRefused(f"both are run {first.header.run_id}; name two runs")
    lines = [str(one) for one in found.refused]
    if factor is Factor.DAY:
        # Everything asked for is equal, so nothing explains what the servers made of it.
        lines += [f"server of {one.arm}: {one.flag}: {one.first} | {one.second}" for one in consequences]
    if lines:
        raise ComparisonRefused(f"the runs differ in more than --factor {factor.value} allows:", lines)
    if not found.varied(factor):
        raise ComparisonRefused(f"--factor {factor.value} is the same in both runs; --factor day or host may be meant")


def _labels(first: RunFacts, second: RunFacts, factor: Factor) -> tuple[str, str]:
    """What to call either run: its value of the factor, or its run id where the two would be called the same."""
    one, other = (_label(facts, factor) for facts in (first, second))
    return (one, other) if one != other else (first.header.run_id, second.header.run_id)


def _label(facts: RunFacts, factor: Factor) -> str:
    spec, host = spec_of(facts), facts.header.host
    match factor:
        case Factor.BACKEND:
            return spec.server.attention_backend
        case Factor.SGLANG:
            answered = (effective_config(one.server_info) for one in facts.launches if one.server_info)
            return next((str(config["version"]) for config in answered if "version" in config), spec.engine.sglang)
        case Factor.DAY:
            return facts.header.created_utc
        case Factor.HOST:
            gpus = host.get("gpus") or ()
            return f"{len(gpus)} x {gpus[0].get('name')}" if gpus else str(host.get("cpu") or "unnamed host")


def _side(run: Measured, label: str) -> Side:
    header, cells = run.facts.header, run.verdict.doubts.cells
    return Side(
        label=label,
        run_id=header.run_id,
        spec_name=header.spec_name,
        spec_hash=header.spec_hash,
        origin=header.origin,
        created_utc=header.created_utc,
        kit_version=header.kit_version,
        headings=run.verdict.headings,
        cells=len(cells),
        valid=sum(cell.state is CellState.VALID for cell in cells),
        sm_mhz=_median([one.sm_mhz.median for one in run.verdict.what_ran.gpus if one.sm_mhz]),
        temperature_c=_median([one.temperature_c.median for one in run.verdict.what_ran.gpus if one.temperature_c]),
    )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


_RATIO_WORDS = {
    SpeedWord.FASTER: "faster",
    SpeedWord.SLOWER: "slower",
    SpeedWord.EQUIVALENT: "equivalent",
    SpeedWord.INCONCLUSIVE: "undecided",
}
_GAIN_WORDS = {
    SpeedWord.FASTER: "larger",
    SpeedWord.SLOWER: "smaller",
    SpeedWord.EQUIVALENT: "equivalent",
    SpeedWord.INCONCLUSIVE: "undecided",
}


def _answer(labels: tuple[str, str], arms: Sequence[ArmRatio]) -> str:
    ratios = _counts(_RATIO_WORDS, [one.word for one in arms])
    gains = _counts(_GAIN_WORDS, [one.gain_word for one in arms if one.gain_word is not None])
    return (
        f"{labels[1]} against {labels[0]}, {len(arms)} arms x levels: throughput {ratios}; "
        f"what speculation gains over its baseline {gains}."
    )


def _counts(words: dict[SpeedWord, str], found: Sequence[SpeedWord]) -> str:
    counted = [f"{n} {words[word]}" for word in SpeedWord if (n := found.count(word))]
    return ", ".join(counted) or "not measured"


def _limits(factor: Factor, first: Side, second: Side) -> Iterator[str]:
    if factor is not Factor.DAY:
        yield (
            f"These are two runs ({first.created_utc} and {second.created_utc}), not arms of one that took turns: "
            f"whatever else changed in between is in every ratio beside the {factor.value}."
        )
    if first.sm_mhz and second.sm_mhz and abs(second.sm_mhz / first.sm_mhz - 1) > MAX_CLOCK_DIFFERENCE:
        yield (
            f"The GPUs ran at {first.sm_mhz:.0f} MHz in the first run and {second.sm_mhz:.0f} MHz in the second: every "
            "ratio is partly one of clocks."
        )
    yield (
        "A gain (arm / baseline on one side over the same on the other) is free of what slows a whole run down; a "
        "ratio of throughputs is not."
    )
    yield "Intervals are over launches of these two runs; they say nothing about a third."
    if Origin.SIMULATED in (first.origin, second.origin):
        yield "A simulated world shows that the procedure works; it says nothing about any GPU."
