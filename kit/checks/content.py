"""Checks of what was written: fast is no merit in a text that repeats itself or ends at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kit.checks.evidence import Evidence, about_arm
from kit.checks.results import Code, Doubt, Severity
from kit.records import Outcome, Phase, RequestRecord
from kit.stats import closing_cycle

__all__ = ["looping_outputs", "short_outputs"]

# A cycle of up to 64 tokens that covers half of an output of some length, four times over, is no enumeration.
MIN_TOKENS = 32
MIN_CYCLE_SHARE = 0.5
MIN_REPEATS = 4.0
MAX_LOOPING_SHARE = 0.1
MAX_SHORT_SHARE = 0.1


def looping_outputs(evidence: Evidence) -> Iterator[Doubt]:
    """A draft predicts a loop almost perfectly, so the arm that loops looks fastest.

    Loops that the baseline does not write on the same prompts void the arm; loops of both come from target or prompts.
    """
    outputs = _outputs(evidence)
    for arm in evidence.spec.arms:
        mine = outputs.get(arm.name, {})
        looping = [prompt for prompt, request in mine.items() if loops(request)]
        if len(looping) <= MAX_LOOPING_SHARE * len(mine):
            continue
        cycle = closing_cycle(mine[looping[0]].output_ids)
        message = (
            f"{len(looping)} of {len(mine)} outputs of {arm.name} end in a loop (for instance a cycle of "
            f"{cycle.period} tokens over {cycle.tokens} of {cycle.total}, {cycle.distinct} different)"
        )
        severity, hint = _whose(looping, evidence, outputs, arm.name)
        yield about_arm(arm.name, Code.LOOPING_OUTPUTS, severity, message, hint)


def _whose(
    looping: Sequence[str], evidence: Evidence, outputs: Mapping[str, Mapping[str, RequestRecord]], arm: str
) -> tuple[Severity, str]:
    reference = evidence.spec.reference(evidence.spec.arm(arm))
    if reference is None:
        return (
            Severity.DOUBT,
            "the target itself loops here; choose other prompts, or let outputs end by themselves",
        )
    baseline = outputs.get(reference.name, {})
    alike = sum(prompt in baseline and loops(baseline[prompt]) for prompt in looping)
    if 2 * alike >= len(looping):
        return Severity.DOUBT, f"{reference.name} loops on {alike} of these too: it is the target or the prompts"
    return Severity.INVALID, f"{reference.name} does not loop on them: verification is broken; its speed is of no use"


def short_outputs(evidence: Evidence) -> Iterator[Doubt]:
    """Outputs that end after one token measure prefill."""
    for arm, mine in _outputs(evidence).items():
        short = sum(request.completion_tokens == 1 < request.max_new_tokens for request in mine.values())
        if short > MAX_SHORT_SHARE * len(mine):
            message = f"{short} of {len(mine)} outputs of {arm} ended after one token"
            hint = "look at a few outputs; prompt format and stop tokens are the usual cause"
            yield about_arm(arm, Code.SHORT_OUTPUTS, Severity.DOUBT, message, hint)


def loops(request: RequestRecord) -> bool:
    """Whether an output ends in a loop that makes up most of it."""
    if len(request.output_ids) < MIN_TOKENS:
        return False
    cycle = closing_cycle(request.output_ids)
    return cycle.share >= MIN_CYCLE_SHARE and cycle.repeats >= MIN_REPEATS


def _outputs(evidence: Evidence) -> dict[str, dict[str, RequestRecord]]:
    """One output for each prompt of each arm; whether its repetitions agree is a matter of losslessness."""
    arms = {cell.cell: evidence.launches[cell.launch].arm for cell in evidence.facts.cells}
    timed = {rep.repetition: arms[rep.cell] for rep in evidence.facts.repetitions if rep.phase is Phase.TIMED}
    found: defaultdict[str, dict[str, RequestRecord]] = defaultdict(dict)
    for request in evidence.facts.requests:
        arm = timed.get(request.repetition)
        if arm is not None and request.outcome is Outcome.OK:
            found[arm].setdefault(request.prompt, request)
    return dict(found)
