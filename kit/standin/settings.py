"""What a launch really runs with: SGLang fills in and overrides flags, differently once speculation is on."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from typing import Any

from kit.contract import Contract
from kit.standin.adaptive import candidates
from kit.standin.dialect import Dialect
from kit.standin.engine import Limits, Speculation
from kit.standin.speculative import speculation
from kit.units import Tokens

__all__ = ["LogitsBufferTooSmall", "Settings", "resolve"]

# Tokens that fit beside the weights of a small model on a large GPU, without and with a draft.
_POOL, _POOL_BESIDE_A_DRAFT = 3_227_882, 3_118_031
_FINE_GRAPHS = (*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8))
_COARSE_GRAPHS = (1, 2, 4, 8, 12, *range(16, 257, 8))
# Settings of graphs that nothing here depends on; the second line came with later versions.
_GRAPHS = {"tc_compiler": "eager", "full_prefill_max_req": None}
_NEWER_GRAPHS = dict.fromkeys(("full_prefill_prefix_chunk_tokens", "max_context_size", "max_seq_len"))
_NO_PREFILL_GRAPHS = {"backend": "disabled", "max_bs": 8192, "bs": []}
_COMPUTED = {
    "attention_backend": "triton",
    "chunked_prefill_size": 8192,
    "custom_weight_loader": [],
    "grammar_backend": "xgrammar",
    "context_length": 8192,
    "device": "cuda",
    "mem_fraction_static": 0.85,
    "page_size": 1,
    "sampling_backend": "pytorch",
}


class LogitsBufferTooSmall(Exception):
    """0.5.15 sizes a CUDA-graph buffer by K at launch and then captures every candidate K, which needs more rows."""

    def __init__(self, *, holds: int, needs: int) -> None:
        super().__init__(f"shared logits buffer holds {holds} rows but caller needs {needs} (vocab_size=49152)")


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved launch. `arguments` is what `/server_info` reports at its top level."""

    dialect: Dialect
    arguments: dict[str, Any]
    speculation: Speculation | None
    limits: Limits
    warnings: tuple[str, ...] = ()

    @property
    def context_length(self) -> Tokens:
        """Longest prompt plus output."""
        return int(self.arguments["context_length"])

    @property
    def largest_graph(self) -> int:
        """Largest batch that decodes as a CUDA graph; 0 when graphs are off."""
        graphs = self.arguments["cuda_graph_config"]["decode"]
        return 0 if graphs["backend"] == "disabled" else int(graphs["max_bs"])

    @property
    def longest_request(self) -> Tokens:
        """Most tokens of prompt and output together, by context length and pool."""
        return min(self.context_length, self.limits.pool_tokens) - 1

    @property
    def largest_draft_tokens(self) -> int:
        """Most tokens that a round can verify; 0 without speculation."""
        if self.speculation is None:
            return 0
        ladder = self.speculation.ladder
        return max(candidates(ladder)) + 1 if ladder else self.speculation.draft_tokens

    @property
    def reserved_tokens(self) -> Tokens:
        """Draft slots that the context check adds to every prompt."""
        if self.speculation is None:
            return 0
        topk: int = self.arguments["speculative_eagle_topk"]
        return max(topk * self.speculation.steps, self.largest_draft_tokens)


def resolve(flags: argparse.Namespace, *, contract: Contract) -> Settings:
    """SGLang's resolution of its flags.

    Raises ValueError, TypeError or LogitsBufferTooSmall where SGLang does not start, with SGLang's message.
    """
    arguments: dict[str, Any] = dict.fromkeys(sorted(contract.server_fields))
    arguments.update((field, value) for field, value in vars(flags).items() if field in contract.server_fields)
    speculates, warnings = speculation(arguments, contract=contract)
    dialect = Dialect.of(contract)
    _fill_in(arguments, speculates=speculates is not None, newer=dialect.newer)
    limits = Limits(
        running_requests=arguments["max_running_requests"],
        prefill_tokens=max(arguments["chunked_prefill_size"], 0) or arguments["max_prefill_tokens"],
        pool_tokens=arguments["max_total_tokens"] or (_POOL_BESIDE_A_DRAFT if speculates else _POOL),
        queued_requests=arguments["max_queued_requests"],
    )
    settings = Settings(dialect, arguments, speculates, limits, warnings)
    if dialect.buffer_by_launch:
        _check_logits_buffer(settings)
    return settings


def _fill_in(arguments: dict[str, Any], *, speculates: bool, newer: bool) -> None:
    """Defaults that SGLang computes at launch."""
    computed = _COMPUTED | {
        "tokenizer_path": arguments["model_path"],
        "served_model_name": arguments["model_path"],
        "max_running_requests": 48 if speculates else 2048,
        "random_seed": random.SystemRandom().randrange(1 << 30),
    }
    arguments.update((field, value) for field, value in computed.items() if arguments[field] is None)
    graphs = {"decode": _decode_graphs(arguments, speculates=speculates), "prefill": _NO_PREFILL_GRAPHS}
    other = _GRAPHS | _NEWER_GRAPHS if newer else _GRAPHS
    arguments["cuda_graph_config"] = {phase: settings | other for phase, settings in graphs.items()}


def _decode_graphs(arguments: dict[str, Any], *, speculates: bool) -> dict[str, Any]:
    """The captured batch sizes: SGLang's own list is finer with speculation than without."""
    given = arguments["cuda_graph_bs_decode"]
    largest = min(
        max(given) if given else arguments["cuda_graph_max_bs_decode"] or 256, arguments["max_running_requests"]
    )
    sizes = given or [*(_FINE_GRAPHS if speculates else _COARSE_GRAPHS), largest]
    captured = sorted({size for size in sizes if size <= largest})
    disabled = arguments["disable_cuda_graph"] or arguments["cuda_graph_backend_decode"] == "disabled"
    return {"backend": "disabled" if disabled else "full", "max_bs": max(captured, default=0), "bs": captured}


def _check_logits_buffer(settings: Settings) -> None:
    if settings.speculation is None or not settings.largest_graph:
        return
    graphs = settings.largest_graph
    holds, needs = graphs * settings.speculation.draft_tokens, graphs * settings.largest_draft_tokens
    if holds < needs:
        raise LogitsBufferTooSmall(holds=holds, needs=needs)
