"""How SGLang 0.5.15 reads its `--speculative-*` flags: what it requires, fills in, adjusts and switches off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.contract import Contract
from kit.standin.adaptive import Rung, candidates, parse_ladder
from kit.standin.engine import Speculation

__all__ = ["speculation"]


def speculation(arguments: dict[str, Any], *, contract: Contract) -> tuple[Speculation | None, tuple[str, ...]]:
    """The speculation that the arguments ask for, and warnings; what SGLang fills in is written to `arguments`.

    Raises ValueError or TypeError where SGLang does not start.
    """
    if arguments["speculative_algorithm"] is None:
        return None, ()
    _normalise(arguments)
    rules: Any = contract.facts["speculative_defaults"]
    if rules["enable_mixed_chunk"] == "off":
        arguments["enable_mixed_chunk"] = False
    ladder, warnings = _ladder(arguments, contract)
    if arguments["speculative_num_steps"] is None:
        _choose_shape(arguments, ladder)
    if arguments["speculative_eagle_topk"] is None:
        raise TypeError("'>' not supported between instances of 'NoneType' and 'int'")
    steps = arguments["speculative_num_steps"]
    if arguments["speculative_eagle_topk"] == 1 and arguments["speculative_num_draft_tokens"] != steps + 1:
        warnings += (
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 at speculative_eagle_topk 1",
        )
        arguments["speculative_num_draft_tokens"] = steps + 1
    if ladder is not None and steps not in candidates(ladder):
        raise ValueError(f"speculative_num_steps={steps} must be one of the candidates {list(candidates(ladder))}")
    return Speculation(steps, arguments["speculative_num_draft_tokens"], ladder), warnings


def _normalise(arguments: dict[str, Any]) -> None:
    algorithm = arguments["speculative_algorithm"].upper()
    algorithm = arguments["speculative_algorithm"] = "EAGLE" if algorithm == "NEXTN" else algorithm
    if algorithm not in ("EAGLE", "EAGLE3"):
        raise ValueError(f"the stand-in speculates with EAGLE or EAGLE3, not with {algorithm}")
    if arguments["speculative_draft_model_path"] and arguments["speculative_draft_model_revision"] is None:
        arguments["speculative_draft_model_revision"] = "main"


def _ladder(arguments: dict[str, Any], contract: Contract) -> tuple[Mapping[int, Rung] | None, tuple[str, ...]]:
    if not arguments["speculative_adaptive"]:
        return None, ()
    topk = arguments["speculative_eagle_topk"]
    if topk not in (None, 1):
        arguments["speculative_adaptive"] = False
        return None, (f"speculative_adaptive disabled: speculative_eagle_topk={topk} is not 1",)
    path = arguments["speculative_adaptive_config"]
    return parse_ladder(json.loads(Path(path).read_text("utf-8")) if path else contract.adaptive_ladder), ()


def _choose_shape(arguments: dict[str, Any], ladder: Mapping[int, Rung] | None) -> None:
    """SGLang's own choice: a tree for a Llama, the middle of the candidates when adaptive."""
    steps, topk, draft_tokens = 5, 4, 8
    if ladder is not None:
        steps, topk = candidates(ladder)[len(candidates(ladder)) // 2], 1
        draft_tokens = steps + 1
    arguments["speculative_num_steps"] = steps
    arguments["speculative_eagle_topk"] = topk
    arguments["speculative_num_draft_tokens"] = draft_tokens
