"""Real SGLang on the CPU, measured once for all tests; without the engine or the model every test is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.errors import PrerequisiteError
from kit.models import located
from kit.records import RunFacts
from kit.runtime import Endpoint, Order, Server, cpu_engine, runtime_for
from kit.sglang import launch_flags
from kit.spec import Spec, load_spec
from kit.store import read_run
from tests.sglang.runs import QUICK, measure


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
    return read_run(measure(tmp_path_factory.mktemp("cpu")))


@pytest.fixture(scope="session")
def simulated(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    """The same requests to the stand-in, launched with the same flags."""
    return read_run(measure(tmp_path_factory.mktemp("standin"), runtime="standin", world="crossover"))


@pytest.fixture(scope="module")
def server(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Endpoint]]:
    """A baseline server of the quick spec, stopped after the tests of a module."""
    spec: Spec = located(load_spec(QUICK))
    flags = launch_flags(spec, spec.arm("baseline"))
    folder, timeout_s = tmp_path_factory.mktemp("server"), spec.engine.startup_timeout_s
    order = Order(0, "baseline", spec.engine.sglang, flags, spec.server.env, folder, timeout_s)
    running = runtime_for(spec).server(order)
    try:
        yield running, running.start()
    finally:
        running.stop()
