"""Rules that span several parts of a spec. Each returns the field at fault and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kit.spec.arms import AdaptiveArm, BaselineArm, Eagle3Arm
from kit.spec.model import Spec

__all__ = ["Fault", "faults"]


class Fault(NamedTuple):
    """A broken rule: the path of the field in the YAML, and one line that says what is wrong and what to do."""

    path: tuple[str | int, ...]
    message: str


def faults(spec: Spec) -> Iterator[Fault]:
    """Every rule that `spec` breaks, in the order of the file."""
    yield from _models(spec)
    yield from _arms(spec)
    yield from _references(spec)
    yield from _load(spec)


def _models(spec: Spec) -> Iterator[Fault]:
    draft = spec.models.draft
    speculating = [arm.name for arm in spec.arms if not isinstance(arm, BaselineArm)]
    if speculating and draft is None:
        yield Fault(
            ("models",), f"arm `{speculating[0]}` speculates but models.draft is missing: name the EAGLE3 draft"
        )
    limit = draft.context_length if draft else None
    if limit and speculating and spec.server.context_length > limit:
        yield Fault(
            ("server", "context_length"),
            f"{spec.server.context_length} exceeds the draft's {limit} positions, and SGLang would refuse to start: "
            f"use {limit} or less on every arm",
        )


def _arms(spec: Spec) -> Iterator[Fault]:
    for name, count in Counter(arm.name for arm in spec.arms).items():
        if count > 1:
            last = max(i for i, arm in enumerate(spec.arms) if arm.name == name)
            yield Fault(("arms", last, "name"), f"`{name}` names {count} arms: give each its own name")
    if not any(isinstance(arm, BaselineArm) for arm in spec.arms):
        yield Fault(("arms",), "no arm is a baseline, so nothing can be compared: add one with `kind: baseline`")
    for i, arm in enumerate(spec.arms):
        if isinstance(arm, Eagle3Arm) and arm.topk > 1 and (arm.server.page_size or spec.server.page_size) > 1:
            backend = arm.server.attention_backend or spec.server.attention_backend
            if backend not in ("flashinfer", "fa3", "triton"):
                yield Fault(("arms", i, "topk"), f"{arm.topk} with pages above 1 does not run on {backend}")
        if isinstance(arm, AdaptiveArm):
            yield from _adaptive(arm, i)


def _adaptive(arm: AdaptiveArm, i: int) -> Iterator[Fault]:
    depths = [k for steps in (arm.candidates or {}).values() for k in steps]
    if depths and arm.num_steps != max(depths):
        yield Fault(
            ("arms", i, "num_steps"),
            f"{arm.num_steps} is not the largest candidate {max(depths)}: SGLang 0.5.15 dies at start-up unless it is",
        )
    for slot in arm.candidates or {}:
        if not slot.isdigit():
            yield Fault(("arms", i, "candidates"), f"slot `{slot}` is not a batch size: use an integer in quotes")


def _references(spec: Spec) -> Iterator[Fault]:
    baselines = [arm.name for arm in spec.arms if isinstance(arm, BaselineArm)]
    for i, arm in enumerate(spec.arms):
        if not isinstance(arm, BaselineArm) and arm.baseline is not None and arm.baseline not in baselines:
            yield Fault(("arms", i, "baseline"), f"`{arm.baseline}` is no baseline arm; there are {baselines}")
    candidate = spec.decision.candidate
    if candidate is not None and candidate not in {arm.name for arm in spec.arms}:
        yield Fault(("decision", "candidate"), f"`{candidate}` is no arm of this spec")


def _load(spec: Spec) -> Iterator[Fault]:
    for level in spec.gate.concurrency or ():
        if level not in spec.load.concurrency:
            yield Fault(
                ("gate", "concurrency"), f"{level} is not measured: load.concurrency is {list(spec.load.concurrency)}"
            )
    largest = max(spec.load.requests(c) for c in spec.load.concurrency)
    share = spec.workload.prompts // spec.design.blocks
    if share < largest:
        yield Fault(
            ("workload", "prompts"),
            f"{spec.workload.prompts} prompts over {spec.design.blocks} blocks give {share} each, but the largest cell "
            f"sends {largest} and must not repeat one: use at least {largest * spec.design.blocks}",
        )
    top = max(spec.load.concurrency)
    if top > spec.server.max_running_requests:
        yield Fault(
            ("server", "max_running_requests"),
            f"{spec.server.max_running_requests} is below concurrency {top}: requests would queue; use {top} or more",
        )
