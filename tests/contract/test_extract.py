from __future__ import annotations

import json
from pathlib import Path

import pytest

import kit.contract
from kit.contract import dump, load, versions
from kit.contract.extract import _endpoints, _fields, _internal_names
from kit.errors import ImportFileError
from tests.contract.conftest import Package

FOLDER = Path(kit.contract.__file__).parent


@pytest.mark.parametrize("version", versions())
def test_a_committed_contract_is_exactly_what_dump_writes(version: str) -> None:
    text = (FOLDER / f"sglang-{version}.json").read_text(encoding="utf-8")
    assert dump(json.loads(text)) == text


@pytest.mark.parametrize("version", versions())
def test_a_committed_contract_names_its_version_and_no_path_of_the_machine(version: str) -> None:
    text = (FOLDER / f"sglang-{version}.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["sglang"] == version
    assert all(len(digest) == 64 for digest in document["sources"].values())
    assert not any(path.startswith("/") for path in document["sources"])


def test_dump_sorts_and_gives_each_entry_one_line() -> None:
    text = dump({"b": 1, "a": {"y": {"k": [2, 1], "j": None}, "x": 0}, "c": {}})
    assert text == '{\n  "a": {\n    "x": 0,\n    "y": {"j": null, "k": [2, 1]}\n  },\n  "b": 1,\n  "c": {}\n}\n'
    assert json.loads(text) == {"b": 1, "a": {"y": {"k": [2, 1], "j": None}, "x": 0}, "c": {}}


def test_fields_keep_the_annotation_and_the_default(package: Package) -> None:
    text = (
        "EMPTY = []\n"
        "class Req:\n"
        "    rid: Optional[str] = field(default=None, kw_only=True)\n"
        "    text: str\n"
        "    top_k: int = 1 << 30\n"
        "    made: int = compute()\n"
    )
    assert _fields(package({"srt/io.py": text}), "srt/io.py", "Req") == {
        "rid": {"type": "Optional[str]", "default": None},
        "text": {"type": "str"},
        "top_k": {"type": "int", "default": 2**30},
        "made": {"type": "int", "default_from": "compute()"},
    }


def test_internal_sampling_fields_are_those_below_their_heading(package: Package) -> None:
    text = (
        "class SamplingParams:\n"
        "    # --- API parameters ---\n"
        "    n: int = 1\n"
        "    # --- Internal fields (set by normalize) ---\n"
        "    stop_strs: int = 0\n"
    )
    assert _internal_names(package({"srt/s.py": text}).module("srt/s.py")) == {"stop_strs"}


def test_a_vanished_heading_stops_the_extraction(package: Package) -> None:
    module = package({"srt/s.py": "class SamplingParams:\n    n: int = 1\n"}).module("srt/s.py")
    with pytest.raises(ImportFileError, match="no longer marks its internal fields"):
        _internal_names(module)


def test_endpoints_come_from_the_app_and_its_routers_but_not_from_conditions(package: Package) -> None:
    sources = package(
        {
            "srt/entrypoints/http_server.py": "from sglang.srt.entrypoints.loads import router as loads_router\n"
            "app.include_router(loads_router)\n"
            "@app.get('/health')\n"
            "@app.get('/health_generate')\n"
            "async def health(): ...\n"
            "@app.api_route('/generate', methods=['POST', 'PUT'], response_model=None)\n"
            "@auth(1)\n"
            "async def generate(): ...\n"
            "@app.get('/storage')\n"
            "async def a(): ...\n"
            "@app.delete('/storage')\n"
            "def b(): ...\n"
            "if envs.X:\n"
            "    @app.get('/maybe')\n"
            "    async def maybe(): ...\n",
            "srt/entrypoints/loads.py": "@router.get('/v1/loads')\nasync def loads(): ...\n",
        }
    )
    assert _endpoints(sources) == {
        "/health": ["GET"],
        "/health_generate": ["GET"],
        "/generate": ["POST", "PUT"],
        "/storage": ["DELETE", "GET"],
        "/v1/loads": ["GET"],
    }


@pytest.mark.parametrize("version", versions())
def test_every_method_the_trace_needs_is_there_in_every_version(version: str) -> None:
    scheduler = "sglang.srt.managers.scheduler.Scheduler."
    results = "sglang.srt.managers.scheduler_components.batch_result_processor.SchedulerBatchResultProcessor."
    controller = "sglang.srt.speculative.adaptive_runtime_state.AdaptiveController."
    hooks = load(version).hooks
    assert {
        scheduler + "run_batch",
        scheduler + "process_batch_result",
        scheduler + "on_idle",
        scheduler + "flush_cache",
        scheduler + "get_internal_state",
        results + "process_batch_result_idle",
        results + "process_batch_result_decode",
        controller + "on_verify_complete",
        controller + "_activate",
    } <= hooks.keys()
    assert hooks[scheduler + "process_batch_result"].signature.startswith("(self, batch: ScheduleBatch, result:")


def test_the_hooked_functions_differ_between_versions() -> None:
    target = "sglang.srt.managers.scheduler.Scheduler.run_batch"
    assert len({load(version).hooks[target].sha256 for version in versions()}) == len(versions())
