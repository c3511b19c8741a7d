"""The quick spec of the CPU engine, cut down to what a test can wait for, measured by any engine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kit.console import Progress
from kit.pipeline import Sitting, Watcher, run_spec
from kit.plan import Selection
from kit.records import RunFacts

__all__ = ["QUICK", "SPECS", "depths_of", "measure"]

SPECS = Path(__file__).parents[2] / "specs"
QUICK = SPECS / "cpu_quick.yaml"


def measure(folder: Path, *, selection: Selection | None = None, watcher: Watcher | None = None, **engine: Any) -> Path:
    """Run the quick spec with fewer requests, on another `engine` if one is given; the run file in `folder`."""
    data = yaml.safe_load(QUICK.read_text(encoding="utf-8"))
    data["engine"] |= engine
    data["workload"] |= {
        "files": ["general.jsonl"],
        "prompts": 14,
        "min_output_tokens": 16,
        "max_output_tokens": 24,
    }
    data["load"] |= {"concurrency": [1, 8], "waves": 1, "min_requests": 3}
    shutil.copy(SPECS / "workloads" / "general.jsonl", folder)
    spec = folder / "cpu_quick.yaml"
    spec.write_text(yaml.safe_dump(data), encoding="utf-8")
    sitting = Sitting(out=folder / "run.duckdb", selection=selection or Selection())
    return run_spec(spec, sitting=sitting, watcher=watcher or Progress())


def depths_of(facts: RunFacts, arm: str) -> set[int]:
    """K of every iteration of an arm; -1 where nothing was drafted."""
    launches = [launch.launch for launch in facts.launches if launch.arm == arm]
    iterations = facts.trace.iterations
    drafts = iterations.draft_tokens[np.isin(iterations.launch, launches)]
    return {int(tokens) - 1 if tokens >= 0 else -1 for tokens in drafts}
