"""Small valid specs for tests; keyword arguments replace parts of a section."""

from __future__ import annotations

import json
from typing import Any

from kit.spec import Spec

BASE: dict[str, Any] = {
    "schema_version": 1,
    "name": "tiny",
    "title": "A tiny spec",
    "question": "Is it faster?",
    "models": {
        "target": {"path": "org/target", "dtype": "bfloat16"},
        "draft": {"path": "org/draft", "context_length": 2048},
    },
    "engine": {"runtime": "standin", "world": "crossover"},
    "server": {"attention_backend": "triton", "context_length": 2048, "max_running_requests": 64},
    "arms": [
        {"kind": "baseline", "name": "baseline"},
        {"kind": "eagle3", "name": "k3", "num_steps": 3, "topk": 1},
        {"kind": "adaptive", "name": "adaptive"},
    ],
    "workload": {"files": ["prompts.jsonl"], "prompts": 600},
    "load": {"concurrency": [1, 8, 32]},
}


def make_spec(**sections: Any) -> Spec:
    """The base spec with parts of its sections replaced."""
    data = json.loads(json.dumps(BASE))
    for name, value in sections.items():
        data[name] = data.get(name, {}) | value if isinstance(value, dict) else value
    return Spec.model_validate_json(json.dumps(data))
