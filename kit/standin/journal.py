"""The server log, in SGLang's words: prefill lines, a decode line every 40 iterations, adaptive switches."""

from __future__ import annotations

import logging

from kit.standin.engine import Engine
from kit.standin.iteration import Iteration, Kind
from kit.standin.settings import Settings
from kit.units import Seconds, Tokens

__all__ = ["LOG", "Journal", "banner", "configure"]

LOG = logging.getLogger("sglang")
_FORMAT = "[%(asctime)s] %(message)s"
_DATES = "%Y-%m-%d %H:%M:%S"


def configure() -> None:
    """Send every log line to stderr with SGLang's time stamp."""
    logging.basicConfig(level=logging.INFO, format=_FORMAT, datefmt=_DATES)
    access = logging.StreamHandler()
    access.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s:     %(message)s", _DATES))
    for name in ("uvicorn", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [access]
        logger.propagate = False
        logger.setLevel(logging.INFO)


def banner(settings: Settings) -> None:
    """What SGLang logs on its way up, as far as somebody reads it."""
    arguments, speculation = settings.arguments, settings.speculation
    LOG.info("server_args=ServerArgs(%s)", ", ".join(f"{name}={value!r}" for name, value in arguments.items()))
    for warning in settings.warnings:
        LOG.warning("%s", warning)
    if speculation and speculation.ladder:
        first = next(iter(speculation.ladder.values()))
        LOG.info(
            "AdaptiveSpeculativeParams initialized: steps=%d, candidate_steps=%s",
            *(speculation.steps, list(first.candidate_steps)),
        )
    if settings.largest_graph:
        _captures(settings)
    LOG.info(
        "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d,"
        " context_len=%d, available_gpu_mem=68.64 GB",
        *(settings.limits.pool_tokens, arguments["chunked_prefill_size"], arguments["max_prefill_tokens"]),
        *(settings.limits.running_requests, settings.context_length),
    )


def _captures(settings: Settings) -> None:
    """The CUDA-graph lines; K = 1 needs no draft decode graph, because the first draft comes from the extend."""
    speculation = settings.speculation
    sizes = settings.arguments["cuda_graph_config"]["decode"]["bs"]
    graphs = [("target decode", 1)]
    if speculation is not None:
        graphs = [("target verify", speculation.draft_tokens), ("draft extend", speculation.draft_tokens)]
        if speculation.steps > 1:
            graphs.insert(1, ("draft decode", 1))
    for name, tokens in graphs:
        LOG.info("Capture %s CUDA graph begin. backend=full, num_tokens_per_bs=%d, bs=%s", name, tokens, sizes)


class Journal:
    """Writes the lines that SGLang's scheduler writes and keeps its server-level counters.

    As in SGLang, the counters include ghost rows and are rolled up only when a decode line is due.
    """

    def __init__(self, *, interval: int, pool_tokens: Tokens, largest_graph: int) -> None:
        self._interval = interval
        self._pool_tokens = pool_tokens
        self._largest_graph = largest_graph
        self._decodes = 0
        self._tokens = 0
        self._correct = 0
        self._rows = 0
        self._since_s: Seconds = 0.0
        self._depth: int | None = None
        self._lifetime = (0, 0)
        self.throughput = 0.0

    @property
    def accept_length(self) -> float | None:
        """`avg_spec_accept_length`: tokens a row since the last flush; None before the first decode line."""
        correct, rows = self._lifetime
        return (correct + rows) / rows if rows else None

    def reset(self) -> None:
        """Forget the lifetime counters, as a cache flush does."""
        self._lifetime = (0, 0)

    def record(self, iteration: Iteration, *, engine: Engine, now_s: Seconds) -> None:
        """Count one iteration and log what is due."""
        if iteration.retracted:
            gained = sum(request.used_tokens for request in iteration.retracted)
            LOG.warning(
                "KV cache pool is full. Retract requests. #retracted_reqs: %d, #new_tokens_gained: %d",
                *(len(iteration.retracted), gained),
            )
        if iteration.kind is Kind.PREFILL:
            self._prefill(iteration)
            return
        self._decodes += 1
        self._tokens += len(iteration.rows)
        if iteration.draft_tokens is not None:
            correct = sum(row.accepted or 0 for row in iteration.rows)
            self._correct += correct
            self._tokens += correct
            self._rows += len(iteration.rows)
        self._switches(iteration, engine)
        if self._decodes % self._interval == 0:
            self._decode(iteration, engine, now_s)

    def _prefill(self, iteration: Iteration) -> None:
        requests = [row.request for row in iteration.rows]
        cached = sum(request.cached_tokens for request in requests)
        fresh = sum(request.prompt_tokens for request in requests) - cached
        LOG.info(
            "Prefill batch, #new-seq: %d, #new-token: %d, #cached-token: %d, token usage: 0.00, #running-req: %d,"
            " #queue-req: %d, #pending-token: 0, cuda graph: False, input throughput (token/s): %.2f",
            *(len(requests), fresh, cached, iteration.running, iteration.waiting),
            fresh / iteration.duration_s,
        )

    def _switches(self, iteration: Iteration, engine: Engine) -> None:
        for switch in iteration.switches:
            LOG.info(
                "Adaptive spec params updated: steps %d -> %d (ema_accept_len=%.2f)",
                *(switch.before, switch.after, switch.ema),
            )
        if self._depth is not None and engine.depth is not None and engine.depth != self._depth:
            LOG.info(
                "Switch adaptive runtime state: steps %d -> %d, draft_tokens %d -> %d",
                *(self._depth, engine.depth, self._depth + 1, engine.depth + 1),
            )
        self._depth = engine.depth

    def _decode(self, iteration: Iteration, engine: Engine, now_s: Seconds) -> None:
        used = engine.used_tokens
        self.throughput = self._tokens / (now_s - self._since_s) if self._since_s else 0.0
        accepted = ""
        if iteration.draft_tokens is not None:
            length = (self._correct + self._rows) / self._rows
            # SGLang divides by the K of now, not by that of the rounds it counts.
            proposals = (engine.draft_tokens or 1) - 1
            rate = (length - 1) / proposals if proposals else 0.0
            accepted = f" accept len: {length:.2f}, accept rate: {rate:.2f},"
        LOG.info(
            "Decode batch, #running-req: %d, #token: %d, token usage: %.2f,%s cuda graph: %s,"
            " gen throughput (token/s): %.2f, #queue-req: %d",
            *(iteration.running, used, used / self._pool_tokens, accepted, len(iteration.rows) <= self._largest_graph),
            *(self.throughput, iteration.waiting),
        )
        self._lifetime = (self._lifetime[0] + self._correct, self._lifetime[1] + self._rows)
        self._tokens = self._correct = self._rows = 0
        self._since_s = now_s
