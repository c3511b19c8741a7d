"""What a spec would do, before anything is started: checked against SGLang's contract, ordered, timed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kit import contract
from kit.errors import SpecError
from kit.load import Prompts, load_prompts
from kit.plan import Plan, Selection, Timing, estimate_seconds, make_plan, timing_of
from kit.sglang import generate_payload, launch_flags
from kit.spec import AdaptiveArm, Spec, load_spec, prereg_hash, registered
from kit.standin.world import load_world
from kit.stats import blocks_needed
from kit.units import Seconds

__all__ = ["Power", "Preview", "preview"]

# Between launches of one arm on a quiet GPU, on a busy one, and on a host whose launches differ like two machines.
_LAUNCH_SDS = (0.01, 0.03, 0.1)
_RATIOS = (1.05, 1.1, 1.2, 1.5)


@dataclass(frozen=True, slots=True)
class Power:
    """Blocks that find a true ratio beyond the spec's noise threshold in four runs of five (method 5.6), by ratio.

    `launch_sd` is the sd of log throughput between launches of one arm. None: not within a thousand.
    """

    launch_sd: float
    blocks: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Preview:
    """A checked spec with its prompts, plan, command lines by arm, registered hash and estimated duration."""

    spec: Spec
    prompts: Prompts
    plan: Plan
    commands: dict[str, tuple[str, ...]]
    spec_hash: str
    timing: Timing
    estimate_s: Seconds
    power: tuple[Power, ...]


def preview(source: Path, selection: Selection | None = None) -> Preview:
    """The preview of the spec in `source`.

    Raises SpecError for anything wrong with the spec, its workload, or the flags and requests that it leads to.
    """
    spec = load_spec(source)
    prompts = _prompts(spec, source)
    plan = make_plan(spec, selection)
    _check_world(spec, source)
    commands = {arm.name: launch_flags(spec, arm) for arm in spec.arms}
    _check_contract(spec, commands, prompts, source)
    timing = timing_of(spec)
    mean_tokens = (spec.workload.min_output_tokens + spec.workload.max_output_tokens) / 2
    return Preview(
        spec=spec,
        prompts=prompts,
        plan=plan,
        commands=commands,
        spec_hash=prereg_hash(registered(spec, workload_hash=prompts.sha256)),
        timing=timing,
        estimate_s=estimate_seconds(plan, timing=timing, output_tokens=mean_tokens),
        power=tuple(_power(launch_sd, spec.decision.noise_threshold) for launch_sd in _LAUNCH_SDS),
    )


def _power(launch_sd: float, threshold: float) -> Power:
    found = {f"{ratio:g}": blocks_needed(ratio, launch_sd=launch_sd, noise_threshold=threshold) for ratio in _RATIOS}
    return Power(launch_sd, found)


def _prompts(spec: Spec, source: Path) -> Prompts:
    """The prompts, of which every block and cell holds each class that has a quota."""
    blocks, form = spec.design.blocks, spec.models.target.prompt_format
    prompts = load_prompts(spec.workload, base=source.parent, prompt_format=form, blocks=blocks)
    fewest = min(map(spec.load.requests, spec.load.concurrency))
    for name in spec.workload.quotas or ():
        if not all(name in {one.prompt_class for one in prompts.part(at, blocks)[:fewest]} for at in range(blocks)):
            raise SpecError(
                f"{source}: workload.quotas.{name}: too few for one in every cell (the smallest sends {fewest} prompts "
                "of its block): raise it, or load.min_requests"
            )
    return prompts


def _check_world(spec: Spec, source: Path) -> None:
    """The simulated world has to exist, where the spec asks for one."""
    if spec.engine.world is not None:
        try:
            load_world(spec.engine.world)
        except SpecError as error:
            raise SpecError(f"{source}: engine.world: {error}") from None


def _check_contract(spec: Spec, commands: dict[str, tuple[str, ...]], prompts: Prompts, source: Path) -> None:
    """Our own flags and request bodies against what the pinned SGLang accepts, before anything is launched."""
    known = contract.load(spec.engine.sglang)
    for adaptive in (arm for arm in spec.arms if isinstance(arm, AdaptiveArm) and arm.candidates is None):
        if adaptive.num_steps != max(known.ladder):
            raise SpecError(
                f"{source}: arm `{adaptive.name}`: num_steps {adaptive.num_steps} is not the largest of SGLang "
                f"{spec.engine.sglang}'s own ladder {list(known.ladder)}: use {max(known.ladder)}, or state candidates"
            )
    for arm, flags in commands.items():
        for problem in known.check_flags(flags):
            raise SpecError(f"{source}: arm `{arm}`: SGLang {spec.engine.sglang} would refuse to start: {problem}")
    first = prompts.prompts[0]
    body = generate_payload(first.text, rid="r", max_new_tokens=first.max_new_tokens, workload=spec.workload)
    for problem in known.check_request(body):
        raise SpecError(f"{source}: SGLang {spec.engine.sglang} would refuse the measured request: {problem}")
