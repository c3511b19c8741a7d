"""A verdict as the draft of a decision record in MADR 4.0.0: what was measured is filled in, what people decide is not.

The status is always "proposed". An option is chosen only where the words allow it; otherwise the draft says that none
is supported, and what would settle it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.analysis import ArmSummary
from kit.checks import Doubt
from kit.format import RATIO, TOKENS_PER_SECOND, Reading, aligned
from kit.records import Origin
from kit.report.entries import counted, in_words, level_in_words, reading
from kit.report.escape import code, fence, prose, text
from kit.report.flags import flag_line
from kit.report.page import run_command, templates, tidy
from kit.report.write import ReportPaths
from kit.stats import LosslessWord, SpeedWord, SweepWord
from kit.verdict import ComparisonVerdict, Heading, Verdict

__all__ = ["madr"]

MOST_LEVELS = 4
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOST_STEPS = 6
_ORDER = (LosslessWord.LOSSLESS, LosslessWord.BENIGN_DIVERGENCE, LosslessWord.UNRESOLVED, LosslessWord.VIOLATED)
_OUTPUTS = {
    LosslessWord.LOSSLESS: "Good, because its outputs are the baseline's, token by token.",
    LosslessWord.BENIGN_DIVERGENCE: "Neutral, because its outputs part from the baseline's only at near-ties.",
    LosslessWord.UNRESOLVED: "Neutral, because it is unresolved whether its outputs are lossless.",
    LosslessWord.VIOLATED: "Bad, because its outputs are not lossless.",
}
_DOUBTED = {
    LosslessWord.UNRESOLVED: "it is unresolved whether its outputs are lossless",
    LosslessWord.VIOLATED: "its outputs are not lossless",
}
_GRAMMAR = {
    SpeedWord.FASTER: "Good, because it gives",
    SpeedWord.SLOWER: "Bad, because it gives",
    SpeedWord.EQUIVALENT: "Neutral, because it is equivalent: it gives",
    SpeedWord.INCONCLUSIVE: "Neutral, because it is undecided: it gives",
}


@dataclass(frozen=True, slots=True)
class OptionView:
    """One option with its points in MADR's grammar."""

    name: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordView:
    """Strings of the draft."""

    date: str
    title: str
    flags: str
    question: str
    setting: str
    drivers: tuple[str, ...]
    options: tuple[OptionView, ...]
    chosen: str
    outcome: str
    settles: tuple[str, ...]
    consequences: tuple[str, ...]
    command: str
    triggers: tuple[str, ...]
    evidence: str
    limits: tuple[str, ...]


def madr(verdict: Verdict, paths: ReportPaths) -> str:
    """The draft as Markdown that ends in one newline; `paths` is the report that it rests on."""
    return tidy(templates().get_template("madr.md.j2").render(v=_view(verdict, paths)))


def _view(verdict: Verdict, paths: ReportPaths) -> RecordView:
    ran, choice = verdict.what_ran, _choice(verdict)
    moments = [ran.created_utc, *(launch.started_utc for launch in ran.launches)]
    return RecordView(
        date=max(day for moment in moments if _DAY.fullmatch(day := moment[:10])),
        title=f"{text(verdict.title)}: {choice.solution}",
        flags=flag_line(verdict.headings),
        question=text(verdict.question),
        setting=_setting(verdict),
        drivers=tuple(_drivers(verdict)),
        options=tuple(OptionView(_name(arm), tuple(_points(verdict, arm))) for arm in ran.arms),
        chosen=_name(choice.arm) if choice.arm else "",
        outcome=choice.reason,
        settles=() if choice.arm else tuple(_settles(verdict)),
        consequences=tuple(_consequences(verdict, choice.arm)),
        command=fence([run_command(verdict)]),
        triggers=tuple(_triggers(verdict)),
        evidence=f"[{paths.page.name}]({paths.page.name}), whose folder has SHA-256 {code(paths.digest)}",
        limits=tuple(map(prose, verdict.limits)),
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    """The option that the words support, None where they support none; `solution` ends the title."""

    arm: ArmSummary | None
    solution: str
    reason: str


_NOT_REAL = {
    Origin.SIMULATED: "every number comes from a simulator, which says nothing about a real host",
    Origin.IMPORTED: "an imported capture supports no word about speed",
}


def _choice(verdict: Verdict) -> _Choice:
    """An arm that is faster everywhere and not lossy, or the baseline where every arm is slower everywhere."""
    arms = {arm.name: arm for arm in verdict.what_ran.arms}
    words = {one.arm: one.word for one in verdict.speed.arms}
    origin = verdict.what_ran.origin
    if origin in _NOT_REAL or Heading.ON_CPU in verdict.headings:
        return _none(_NOT_REAL.get(origin, "speeds on a CPU say nothing about GPUs"))
    candidate = verdict.speed.candidate
    asked = {candidate: words[candidate]} if candidate in words else words
    winners = [name for name, word in asked.items() if word is SweepWord.EAGLE3_DOMINATES]
    if len(winners) == 1:
        return _winner(verdict, arms[winners[0]])
    if len(winners) > 1:
        names = ", ".join(map(text, winners))
        return _none(f"{names} are all faster at every measured level, and the run does not rank them")
    if asked and all(word is SweepWord.BASELINE_DOMINATES for word in asked.values()):
        baseline = next(one.baseline for one in verdict.speed.arms)
        return _Choice(arms[baseline], "do not speculate", _answer(verdict))
    if SweepWord.EAGLE3_WINS_UP_TO in asked.values():
        return _none("who is faster depends on the concurrency, so the expected load decides")
    return _none(_answer(verdict))


def _winner(verdict: Verdict, arm: ArmSummary) -> _Choice:
    outputs = _outputs(verdict, arm.name)
    if outputs in _DOUBTED:
        return _none(f"{text(arm.name)} is faster at every measured level, but {_DOUBTED[outputs]}")
    return _Choice(arm, f"use {text(arm.name)}", _answer(verdict))


def _answer(verdict: Verdict) -> str:
    """The verdict's sentence inside another."""
    return prose(verdict.answer[:1].lower() + verdict.answer[1:].rstrip("."))


def _none(reason: str) -> _Choice:
    return _Choice(None, "no option is supported yet", reason)


def _name(arm: ArmSummary) -> str:
    """The same words wherever the option is named."""
    if arm.baseline is None:
        return f"{text(arm.name)} (no speculation)"
    if arm.kind == "adaptive":
        return f"{text(arm.name)} (EAGLE3, adaptive K)"
    shape = f", tree of {arm.topk} branches" if (arm.topk or 1) > 1 else ""
    return f"{text(arm.name)} (EAGLE3, K = {arm.depth}{shape})"


def _setting(verdict: Verdict) -> str:
    ran = verdict.what_ran
    known = {one.name: one.value for one in (*ran.models, *ran.engine, *ran.host)}
    named = {
        "target": "target",
        "draft": "draft",
        "attention backend": "attention backend",
        "gpus": "GPUs",
        "cpu": "CPU",
    }
    shown = [f"{label} {code(known[name])}" for name, label in named.items() if name in known]
    version = known.get("SGLang, answered", "nobody said")
    return f"Measured with SGLang {code(version)}: {', '.join(shown)}."


def _drivers(verdict: Verdict) -> Iterator[str]:
    speed = verdict.speed
    noise = f"{100 * speed.noise_threshold:g} %"
    yield f"Output throughput in the steady window ({code(speed.metric)}), at every concurrency by itself"
    yield f"A difference counts only beyond {noise}, by an interval of {level_in_words(speed.level)} over launches"
    yield "Outputs must be the baseline's, but for near-ties"
    if speed.candidate:
        yield f"{code(speed.candidate)} was named as the candidate before the run"


def _points(verdict: Verdict, arm: ArmSummary) -> Iterator[str]:
    if arm.baseline is None:
        levels = sorted((one for one in verdict.speed.levels if one.arm == arm.name), key=lambda one: one.concurrency)
        for level in levels[:MOST_LEVELS]:
            speed = in_words(level.throughput_window, unit=TOKENS_PER_SECOND)
            yield f"Neutral, because it is what the others are compared with: {speed} at {_at(level.concurrency)}."
        return
    words = _chosen_levels([one for one in verdict.speed.comparisons if one.comparison.arm == arm.name])
    yield from map(_speed_point, words)
    outputs = _outputs(verdict, arm.name)
    yield _OUTPUTS[outputs] if outputs else "Neutral, because its outputs were not compared."


def _chosen_levels(words: Sequence[ComparisonVerdict]) -> list[ComparisonVerdict]:
    """All levels, or the lowest, the highest and two between."""
    ordered = sorted(words, key=lambda one: one.comparison.concurrency)
    if len(ordered) <= MOST_LEVELS:
        return ordered
    last = len(ordered) - 1
    return [ordered[round(at * last / (MOST_LEVELS - 1))] for at in range(MOST_LEVELS)]


def _speed_point(one: ComparisonVerdict) -> str:
    comparison = one.comparison
    if comparison.ratio.point is None:
        return f"Neutral, because {_at(comparison.concurrency)} gave no number: {prose(one.reason or 'no valid cell')}."
    (ratio,) = aligned([reading(comparison.ratio)], unit=RATIO)
    than, at = text(comparison.baseline), _at(comparison.concurrency)
    return f"{_GRAMMAR[one.word]} {ratio} times the throughput of {than} at {at}."


def _at(concurrency: int) -> str:
    return f"{counted(concurrency, 'request')} at once"


def _outputs(verdict: Verdict, arm: str) -> LosslessWord | None:
    words = [row.word for row in verdict.losslessness.rows if row.outputs.arm == arm]
    return max(words, key=_ORDER.index) if words else None


def _consequences(verdict: Verdict, chosen: ArmSummary | None) -> Iterator[str]:
    """The largest gain and the largest loss that carry a word, of the chosen arm or of any."""
    of_any = chosen is None or chosen.baseline is None
    words = [one for one in verdict.speed.comparisons if of_any or (chosen and one.comparison.arm == chosen.name)]
    for word, pick in ((SpeedWord.FASTER, max), (SpeedWord.SLOWER, min)):
        found = [one for one in words if one.word is word and one.comparison.ratio.point is not None]
        if found:
            one = pick(found, key=lambda each: each.comparison.ratio.point or 1.0)
            comparison = one.comparison
            (ratio,) = aligned([Reading(*_ends(one))], unit=RATIO)
            grade = "Good" if word is SpeedWord.FASTER else "Bad"
            yield (
                f"{grade}, because {text(comparison.arm)} gives {ratio} times the throughput of "
                f"{text(comparison.baseline)} at {_at(comparison.concurrency)}."
            )


def _ends(one: ComparisonVerdict) -> tuple[float | None, float | None, float | None]:
    ratio = one.comparison.ratio
    return (ratio.point, ratio.interval.lo, ratio.interval.hi) if ratio.interval else (ratio.point, None, None)


def _settles(verdict: Verdict) -> Iterator[str]:
    """What would settle an undecided run: the levels that are open, and what the doubts advise."""
    for arm in verdict.speed.arms:
        if arm.undecided:
            levels = ", ".join(map(str, arm.undecided))
            yield f"More launches of {text(arm.arm)} and {text(arm.baseline)} at concurrency {levels}."
    hints: Sequence[Doubt] = verdict.doubts.doubts
    yield from list(dict.fromkeys(prose(doubt.hint) for doubt in hints))[:MOST_STEPS]


def _triggers(verdict: Verdict) -> Iterator[str]:
    ran = verdict.what_ran
    yield "The target, the draft, a revision or the quantisation of either"
    yield "SGLang, its kernels, the image, or a flag of the server"
    yield "The GPU, its number, its driver or its power limit"
    yield f"The prompts (SHA-256 {code(ran.workload_hash)}), the output lengths or the expected concurrency"
