"""Check of what went in: every server has to make the same tokens of the same prompt."""

from __future__ import annotations

from collections.abc import Iterator

from kit.checks.evidence import Evidence, about_launch
from kit.checks.results import Code, Doubt, Severity
from kit.records import Launch, Phase

__all__ = ["inputs_differ"]

# A second look continues a prompt by part of an answer, so its length is another one by intent.
_CONTINUED = (Phase.PREFILL,)


def inputs_differ(evidence: Evidence) -> Iterator[Doubt]:
    """Another tokenizer, chat format or beginning-of-text token is another workload.

    Prompts are sent as text, and a server tells the number of tokens that it made of each; equal numbers are necessary,
    not sufficient. A launch is held against the first one of its baseline.
    """
    lengths = _lengths(evidence)
    for launch in evidence.facts.launches:
        first = _first_of_baseline(evidence, launch)
        ours, theirs = lengths.get(launch.launch, {}), lengths.get(first, {})
        if found := [name for name in ours if len(ours[name]) > 1 or ours[name] != theirs.get(name, ours[name])]:
            example = found[0]
            yield about_launch(
                launch,
                Code.INPUTS_DIFFER,
                Severity.INVALID,
                f"{len(found)} of {len(ours)} prompts became another number of tokens than in launch {first} "
                f"(for instance {example}: {_listed(ours[example])}, there {_listed(theirs.get(example, set()))})",
                "serve every arm with the same tokenizer, revision and chat format",
            )


def _lengths(evidence: Evidence) -> dict[int, dict[str, set[int]]]:
    """For each launch the numbers of tokens that its server made of each prompt."""
    cells = {cell.cell: cell.launch for cell in evidence.facts.cells}
    passes = {one.repetition: cells[one.cell] for one in evidence.facts.repetitions if one.phase not in _CONTINUED}
    found: dict[int, dict[str, set[int]]] = {}
    for request in evidence.facts.requests:
        launch = passes.get(request.repetition)
        if launch is not None and request.prompt_tokens is not None:
            found.setdefault(launch, {}).setdefault(request.prompt, set()).add(request.prompt_tokens)
    return found


def _first_of_baseline(evidence: Evidence, launch: Launch) -> int:
    """The first launch of the baseline in the same block, which sends the same prompts; itself without one."""
    arm = evidence.arm(launch)
    baseline = evidence.spec.reference(arm) or arm
    mine = (one for one in evidence.facts.launches if one.arm == baseline.name and one.block == launch.block)
    return next((one.launch for one in mine if one.launch in evidence.served), launch.launch)


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "not told"
