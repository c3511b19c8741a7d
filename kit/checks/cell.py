"""Checks of single cells: did the requests succeed, did the client keep up, was it the load that was asked for?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kit.analysis import CellResult, depth_of
from kit.checks.evidence import Evidence, about_cell
from kit.checks.results import Code, Doubt, Severity
from kit.records import NO_TEXT, Outcome, Phase, RequestRecord
from kit.sglang import admission_limit, eager_from, effective_config, retracted_in
from kit.spec import AdaptiveArm

__all__ = [
    "admission_limits",
    "cached_tokens",
    "dead_draft",
    "eager_decode",
    "empty_texts",
    "failed_requests",
    "few_waves",
    "identity_failed",
    "nan_logits",
    "queueing",
    "retraction",
    "steady_window",
]

MIN_WAVES = 4
MAX_EAGER_SHARE = 0.01
# Below this an acceptance length prints as 1.00.
DEAD_ACCEPTED = 0.005


def failed_requests(evidence: Evidence) -> Iterator[Doubt]:
    """Failures above the spec's limit void a cell; fewer are shown."""
    limit = evidence.spec.load.failure_limit
    for cell, _ in evidence.cells():
        if cell.failed:
            share = cell.failed / cell.requests
            kinds = ", ".join(f"{c.count} {c.outcome.value}" for c in cell.outcomes if c.outcome is not Outcome.OK)
            reason, hint = _told(evidence, cell)
            yield about_cell(
                cell,
                Code.FAILED_REQUESTS,
                Severity.INVALID if share > limit else Severity.DOUBT,
                f"{cell.failed} of {cell.requests} requests failed ({kinds}); the limit is {limit:.1%}{reason}",
                hint,
            )


def empty_texts(evidence: Evidence) -> Iterator[Doubt]:
    """Tokens counted for an answer without text reach no user; the limit is that of failures."""
    limit, cell_of = evidence.spec.load.failure_limit, {one.repetition: cell.cell for cell, one in evidence.passes()}
    empty = Counter(cell_of.get(one.repetition) for one in evidence.facts.requests if _is_textless(one))
    for cell, _ in evidence.cells():
        if count := empty[cell.cell]:
            yield about_cell(
                cell,
                Code.EMPTY_TEXTS,
                Severity.INVALID if count > limit * cell.requests else Severity.DOUBT,
                f"suspicious: {count} of {cell.requests} answers count tokens and have an empty text; "
                f"the limit is {limit:.1%}",
                "look at their output ids: a prompt format that ends the turn at once is the usual cause",
            )


def _is_textless(request: RequestRecord) -> bool:
    return request.outcome is Outcome.OK and request.error == NO_TEXT


def _told(evidence: Evidence, cell: CellResult) -> tuple[str, str]:
    """What the server's log says of the cell's failures, after a semicolon, and the next step."""
    timed = (one for one in evidence.failed if one.cell == cell.cell and one.phase is Phase.TIMED)
    told = [one.why for one in timed if one.why is not None]
    if not told:
        return "", "read the launch's log at the time of the failures; a failed request is never retried"
    (first, count), *others = Counter(why.title for why in told).most_common()
    shown = next(why for why in told if why.title == first)
    more = f", and {sum(n for _, n in others)} for other reasons" if others else ""
    return f"; {count} of them: {first} (server log, line {shown.line}){more}", shown.advice


def nan_logits(evidence: Evidence) -> Iterator[Doubt]:
    """NaN logits make every number of the cell meaningless."""
    for cell, _ in evidence.cells():
        count = sum(c.count for c in cell.outcomes if c.outcome is Outcome.NAN)
        if count:
            yield about_cell(
                cell,
                Code.NAN,
                Severity.INVALID,
                f"{count} requests ended because the logits were NaN",
                "check dtype and quantisation; float16 overflows with some drafts where bfloat16 does not",
            )


def cached_tokens(evidence: Evidence) -> Iterator[Doubt]:
    """A prefix from the cache makes prefill cheaper for whoever comes second."""
    for cell, counts in evidence.cells():
        if counts.cached_tokens is None:
            message, severity = "the server did not report cached tokens", Severity.UNKNOWN
        elif counts.cached_tokens:
            message, severity = _cached(counts.cached_tokens, counts.prompt_tokens), Severity.INVALID
        else:
            continue
        hint = "start every arm with --disable-radix-cache and flush the cache between repetitions"
        yield about_cell(cell, Code.CACHED_TOKENS, severity, message, hint)


def _cached(tokens: int, prompt: int | None) -> str:
    share = f" of {prompt} ({tokens / prompt:.1%})" if prompt else ""
    return (
        f"{tokens}{share} prompt tokens came from the prefix cache, so time to first token and throughput are not "
        "those of a cold start; the time per output token is of decoding alone"
    )


def retraction(evidence: Evidence) -> Iterator[Doubt]:
    """A retracted request is computed twice and breaks the accounting of tokens."""
    for cell, counts in evidence.cells():
        logged = retracted_in(evidence.launches[cell.launch].log) if counts.retractions is None else None
        if logged:
            message, severity = f"the server's log counts {logged} retracted requests", Severity.INVALID
        elif counts.retractions is None:
            message, severity = "the server did not report retractions", Severity.UNKNOWN
        elif counts.retractions:
            message, severity = f"requests were retracted {counts.retractions} times", Severity.INVALID
        else:
            continue
        hint = "the KV pool was full: raise mem_fraction_static, or lower the concurrency or the output length"
        yield about_cell(cell, Code.RETRACTION, severity, message, hint)


def admission_limits(evidence: Evidence) -> dict[int, int | None]:
    """Most requests that the server of each launch runs at once, from its description or else its log."""
    limits = {launch.launch: admission_limit(launch.log) for launch in evidence.facts.launches}
    for launch, config in evidence.configs():
        own = config.get("effective_max_running_requests_per_dp") or config.get("max_running_requests")
        limits[launch.launch] = own or limits[launch.launch]
    return limits


def queueing(evidence: Evidence) -> Iterator[Doubt]:
    """Above the server's own limit requests wait in line, and the concurrency is not the one on the label."""
    limits = admission_limits(evidence)
    for cell, _ in evidence.cells():
        limit = limits.get(cell.launch)
        if limit is None:
            yield about_cell(
                cell,
                Code.QUEUEING_UNKNOWN,
                Severity.UNKNOWN,
                "the server's limit of running requests is not known",
                "keep /server_info of every launch",
            )
        elif cell.concurrency > limit:
            yield about_cell(
                cell,
                Code.QUEUEING,
                Severity.INVALID,
                f"the server runs at most {limit} requests, so concurrency {cell.concurrency} queued",
                "raise server.max_running_requests to the largest concurrency on every arm",
            )


def eager_decode(evidence: Evidence) -> Iterator[Doubt]:
    """Decoding without CUDA graphs where they were asked for is another server."""
    if evidence.spec.server.disable_cuda_graph:
        return
    for cell, counts in evidence.cells():
        share = counts.eager_iterations / max(counts.iterations, 1)
        ceiling = None if counts.iterations else eager_from(evidence.launches[cell.launch].log)
        if ceiling is not None and cell.concurrency >= ceiling:
            yield about_cell(
                cell,
                Code.EAGER_DECODE,
                Severity.INVALID,
                f"the log shows batches of {ceiling} and more decoded without a CUDA graph: the graphs end below",
                f"raise the largest captured batch (server.cuda_graph_batch_sizes) to {cell.concurrency} on every arm",
            )
        elif share > MAX_EAGER_SHARE:
            yield about_cell(
                cell,
                Code.EAGER_DECODE,
                Severity.INVALID,
                f"{counts.eager_iterations} of {counts.iterations} iterations ran without a CUDA graph",
                "put every measured batch size into server.cuda_graph_batch_sizes, or disable graphs on every arm",
            )


def dead_draft(evidence: Evidence) -> Iterator[Doubt]:
    """An acceptance length of 1.00 means that the draft never helped: wrong draft, wrong layers, wrong vocabulary.

    Rounds in which an adaptive controller drafts nothing say nothing of the draft, and only a trace tells them apart.
    """
    for cell, counts in evidence.cells():
        arm = evidence.spec.arm(cell.arm)
        rounds = (counts.drafted_rounds or 0) if isinstance(arm, AdaptiveArm) else counts.verify_rounds
        if depth_of(arm) and rounds and counts.accepted_drafts < DEAD_ACCEPTED * rounds:
            yield about_cell(
                cell,
                Code.DEAD_DRAFT,
                Severity.INVALID,
                f"dead draft: acceptance length is 1.00, {counts.accepted_drafts} drafts accepted in {rounds} rounds; "
                "that says nothing of the method or the GPU",
                _dead_draft_hint(evidence, cell),
            )


def _dead_draft_hint(evidence: Evidence, cell: CellResult) -> str:
    """What to look at, the likeliest first."""
    info = evidence.launches[cell.launch].server_info
    config = effective_config(info) if info else {}
    algorithm, draft = str(config.get("speculative_algorithm")), str(config.get("speculative_draft_model_path"))
    if algorithm.upper() == "EAGLE" and "eagle3" in draft.lower().replace("-", ""):
        return "the draft is named after EAGLE3, and --speculative-algorithm is EAGLE: set it to EAGLE3"
    return (
        "check that the draft was trained for this very target and its revision, that it was not quantised with the "
        "target, and that its auxiliary layers are those of its training"
    )


def steady_window(evidence: Evidence) -> Iterator[Doubt]:
    """Only tokens received while the load stood at its level count towards a word."""
    for cell, _ in evidence.cells():
        if cell.throughput_window.point is not None:
            continue
        if cell.throughput_full_run.point is None and not cell.e2e_latency_s.n and cell.failed < cell.requests:
            code, severity = Code.NO_CLIENT_TIMES, Severity.UNKNOWN
            hint = "record send and end times of every request"
        elif not cell.ttft_s.n and cell.failed < cell.requests:
            code, severity = Code.NO_CHUNK_TIMES, Severity.UNKNOWN
            hint = "stream the answers and record when each chunk arrives"
        else:
            code, severity = Code.NO_STEADY_WINDOW, Severity.INVALID
            hint = "raise load.waves, so that every slot serves several requests"
        yield about_cell(cell, code, severity, f"no steady window: {cell.throughput_window.reason}", hint)


def few_waves(evidence: Evidence) -> Iterator[Doubt]:
    """Ramps weigh more the fewer waves there are; four decide."""
    for cell, _ in evidence.cells():
        if cell.waves < MIN_WAVES:
            yield about_cell(
                cell,
                Code.FEW_WAVES,
                Severity.DOUBT,
                f"{cell.requests} requests are {cell.waves:.1f} waves, fewer than {MIN_WAVES}",
                "set load.waves to 4 or more",
            )


def identity_failed(evidence: Evidence) -> Iterator[Doubt]:
    """Counts of client, server and trace that do not agree describe different runs."""
    cells = {cell.cell: cell for cell in evidence.analysis.cells}
    for identities in evidence.analysis.identities:
        for failure in identities.failures:
            yield about_cell(
                cells[identities.cell],
                Code.IDENTITY_FAILED,
                Severity.INVALID,
                f"{failure.identity}: {failure.count} of {identities.checked} requests do not add up "
                f"(for instance {failure.example})",
                "client, server and trace must count the same requests, tokens and rounds; see docs/method.md",
            )
