"""Real SGLang on the CPU, measured once for all tests; without the engine or the model every test is skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kit.console import Progress
from kit.errors import PrerequisiteError
from kit.models import located
from kit.pipeline import Sitting, run_spec
from kit.records import RunFacts
from kit.runtime import Endpoint, Order, Server, cpu_engine, runtime_for
from kit.sglang import launch_flags
from kit.spec import Spec, load_spec
from kit.store import read_run

SPECS = Path(__file__).parents[2] / "specs"
QUICK = SPECS / "cpu_quick.yaml"


@pytest.fixture(scope="session")
def engine() -> Path:
    """The interpreter of the CPU engine, with the target at hand."""
    try:
        located(load_spec(QUICK))
        return cpu_engine()
    except PrerequisiteError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def facts(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    """The quick spec with fewer and shorter requests, measured as a user would."""
    folder = tmp_path_factory.mktemp("cpu")
    data = yaml.safe_load(QUICK.read_text(encoding="utf-8"))
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
    run_spec(spec, sitting=Sitting(out=folder / "run.duckdb"), watcher=Progress())
    return read_run(folder / "run.duckdb")


@pytest.fixture
def server(engine: Path, tmp_path: Path) -> Iterator[tuple[Server, Endpoint]]:
    """A baseline server of the quick spec, stopped after the test."""
    spec: Spec = located(load_spec(QUICK))
    flags = launch_flags(spec, spec.arm("baseline"))
    order = Order(0, "baseline", spec.engine.sglang, flags, spec.server.env, tmp_path, spec.engine.startup_timeout_s)
    running = runtime_for(spec).server(order)
    try:
        yield running, running.start()
    finally:
        running.stop()
