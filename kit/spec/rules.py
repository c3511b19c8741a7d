"""Rules that span several parts of a spec. Each returns the field at fault and what to do about it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kit.spec.arms import AdaptiveArm, BaselineArm, Eagle3Arm, Server
from kit.spec.model import Spec

__all__ = ["Fault", "faults"]

# Flags that other fields turn into, or that every arm carries: set a second time, the last one would win in silence.
_TAKEN_FLAGS = frozenset(
    {
        *(name.replace("_", "-") for name in Server.model_fields),
        *("cuda-graph-bs-decode", "disable-radix-cache", "dtype", "enforce-disable-flashinfer-allreduce-fusion"),
        *("incremental-streaming-output", "model-path", "quantization", "revision", "stream-interval", "tp", "tp-size"),
        *("speculative-adaptive", "speculative-adaptive-config", "speculative-algorithm"),
        *("speculative-draft-model-path", "speculative-eagle-topk"),
        *("speculative-num-draft-tokens", "speculative-num-steps"),
    }
)

# They change what a request asks for behind the kit's back, and a wrong key in them fails every request.
_REQUEST_FLAGS = frozenset({"preferred-sampling-params", "sampling-defaults"})

# SGLang switches its adaptive controller off beside them, and goes on at a fixed depth.
_NO_ADAPTIVE = ("enable-dp-attention", "enable-multi-layer-eagle", "enable-pdmux", "enable-two-batch-overlap")

# A spec is published and its hash is public, so a secret in it is lost.
_SECRET = re.compile(r"(^|[-_])(key|token|secret|password)([-_]|$)", re.IGNORECASE)

# They fake acceptance or force retraction, so that nothing measured with them is a measurement.
_FALSIFYING = ("SGLANG_SIMULATE_ACC", "SGLANG_TEST_RETRACT")


class Fault(NamedTuple):
    """A broken rule: the path of the field in the YAML, and one line that says what is wrong and what to do."""

    path: tuple[str | int, ...]
    message: str


def faults(spec: Spec) -> Iterator[Fault]:
    """Every rule that `spec` breaks, in the order of the file."""
    yield from _models(spec)
    yield from _urls(spec)
    yield from _server(spec)
    yield from _arms(spec)
    yield from _references(spec)
    yield from _once(spec)
    yield from _mix(spec)
    yield from _outputs(spec)
    yield from _load(spec)


def _mix(spec: Spec) -> Iterator[Fault]:
    """Where blocks differ in content, one block stands for no other."""
    if spec.workload.mix == "homogeneous":
        for name, asked in (("once", spec.design.once), ("closing_baseline", spec.design.closing_baseline)):
            if asked:
                yield Fault(
                    ("design", name),
                    "holds one block against others, and under workload.mix homogeneous these send other classes: "
                    "leave it out",
                )


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


def _server(spec: Spec) -> Iterator[Fault]:
    server, top = spec.server, max(spec.load.concurrency)
    if top > server.max_running_requests:
        yield Fault(
            ("server", "max_running_requests"),
            f"{server.max_running_requests} is below concurrency {top}: requests would queue; use {top} or more",
        )
    sizes = server.cuda_graph_batch_sizes
    if sizes is not None and not server.disable_cuda_graph and top > max(sizes, default=0):
        yield Fault(
            ("server", "cuda_graph_batch_sizes"),
            f"{list(sizes)} ends below concurrency {top}, which would decode without a graph: add {top}",
        )
    yield from _flags(server.extra_flags, ("server", "extra_flags"))
    for name in server.env:
        if _SECRET.search(name):
            yield Fault(("server", "env", name), "looks like a secret, and specs are published: set it in the shell")
        if name.startswith(_FALSIFYING):
            yield Fault(("server", "env", name), "falsifies what is measured: leave it out")


def _flags(flags: Mapping[str, object], path: tuple[str | int, ...]) -> Iterator[Fault]:
    for name in flags:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            yield Fault((*path, name), f"not the name of a flag: write {json.dumps(name.strip('-').replace('_', '-'))}")
        elif name in _TAKEN_FLAGS:
            yield Fault((*path, name), "already follows from other fields or is set on every arm: leave it out")
        elif name in _REQUEST_FLAGS:
            yield Fault((*path, name), "changes what requests ask for; the spec's workload does: leave it out")
        elif _SECRET.search(name):
            yield Fault((*path, name), "looks like a secret, and specs are published: leave it out")


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
            yield from _switched_off(spec.server.extra_flags, ("server", "extra_flags"))
            yield from _switched_off(arm.server.extra_flags, ("arms", i, "server", "extra_flags"))
        yield from _flags(arm.server.extra_flags, ("arms", i, "server", "extra_flags"))


def _adaptive(arm: AdaptiveArm, i: int) -> Iterator[Fault]:
    if arm.candidates is not None and not all(arm.candidates.values() or [()]):
        yield Fault(("arms", i, "candidates"), "no slot, or a slot without K: give every batch size at least one K")
    depths = [k for steps in (arm.candidates or {}).values() for k in steps]
    if depths and arm.num_steps != max(depths):
        yield Fault(
            ("arms", i, "num_steps"),
            f"{arm.num_steps} is not the largest candidate {max(depths)}: SGLang 0.5.15 dies at start-up unless it is",
        )
    for slot in arm.candidates or {}:
        if not re.fullmatch("[1-9][0-9]*", slot):
            yield Fault(("arms", i, "candidates", slot), "not a batch size: use an integer in quotes")


def _switched_off(flags: Mapping[str, object], path: tuple[str | int, ...]) -> Iterator[Fault]:
    for name in _NO_ADAPTIVE:
        if flags.get(name):
            yield Fault((*path, name), "switches the adaptive controller off in silence: leave it out, or the arm")


def _urls(spec: Spec) -> Iterator[Fault]:
    if spec.engine.runtime != "attach":
        return
    arms, urls = [arm.name for arm in spec.arms], spec.engine.urls or {}
    for name in sorted(set(arms) ^ set(urls)):
        problem = "has no URL" if name in arms else f"is no arm; there are {arms}"
        yield Fault(("engine", "urls"), f"`{name}` {problem}: attach needs one for every arm")
    for name, url in urls.items():
        if not re.fullmatch(r"http://[^/\s@]+", url):
            yield Fault(("engine", "urls", name), f"{url!r} is no address of the form http://HOST:PORT")


def _references(spec: Spec) -> Iterator[Fault]:
    baselines = [arm.name for arm in spec.arms if isinstance(arm, BaselineArm)]
    for i, arm in enumerate(spec.arms):
        if not isinstance(arm, BaselineArm) and arm.baseline is not None and arm.baseline not in baselines:
            yield Fault(("arms", i, "baseline"), f"`{arm.baseline}` is no baseline arm; there are {baselines}")
    traced = spec.design.trace_cost
    if traced is not None and traced not in {arm.name for arm in spec.arms}:
        yield Fault(("design", "trace_cost"), f"`{traced}` is no arm; there are {[arm.name for arm in spec.arms]}")
    candidate = spec.decision.candidate
    contenders = [arm.name for arm in spec.arms if not isinstance(arm, BaselineArm)]
    if candidate is not None and candidate not in contenders:
        yield Fault(("decision", "candidate"), f"`{candidate}` is no arm that speculates; there are {contenders}")


def _once(spec: Spec) -> Iterator[Fault]:
    speculating = [arm.name for arm in spec.arms if not isinstance(arm, BaselineArm)]
    for at, name in enumerate(spec.design.once):
        if name not in speculating:
            yield Fault(
                ("design", "once", at), f"`{name}` is no arm that speculates; there are {', '.join(speculating)}"
            )


def _outputs(spec: Spec) -> Iterator[Fault]:
    rule, share = spec.losslessness, spec.workload.prompts // spec.design.blocks
    if rule.prompts > share:
        yield Fault(("losslessness", "prompts"), f"{rule.prompts} are more than the {share} of a block: use {share}")
    if rule.prompts and max(rule.concurrency, default=0) > spec.server.max_running_requests:
        yield Fault(
            ("losslessness", "concurrency"),
            f"{max(rule.concurrency)} is above server.max_running_requests {spec.server.max_running_requests}",
        )
    if rule.prompts and rule.max_output_tokens >= spec.server.context_length:
        yield Fault(
            ("losslessness", "max_output_tokens"),
            f"{rule.max_output_tokens} tokens and a prompt do not fit server.context_length "
            f"{spec.server.context_length}",
        )


def _load(spec: Spec) -> Iterator[Fault]:
    for level in spec.gate.concurrency or ():
        if level not in spec.load.concurrency:
            yield Fault(
                ("gate", "concurrency"), f"{level} is not measured: load.concurrency is {list(spec.load.concurrency)}"
            )
    longest, room = spec.workload.max_output_tokens, spec.server.context_length
    if longest >= room:
        yield Fault(
            ("workload", "max_output_tokens"),
            f"{longest} tokens and a prompt do not fit server.context_length {room}: SGLang would refuse the request",
        )
    largest = max(spec.load.requests(c) for c in spec.load.concurrency)
    largest = max(largest, spec.load.arrival.requests if spec.load.arrival else 0)
    share = spec.workload.prompts // spec.design.blocks
    if share < largest:
        yield Fault(
            ("workload", "prompts"),
            f"{spec.workload.prompts} prompts over {spec.design.blocks} blocks give {share} each, but the largest cell "
            f"sends {largest} and must not repeat one: use at least {largest * spec.design.blocks}",
        )
