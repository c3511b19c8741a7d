from __future__ import annotations

import hashlib
import importlib.util
import inspect
import zipfile
from pathlib import Path

import pytest

from kit.contract.source import Sources
from kit.errors import ImportFileError
from tests.contract.conftest import Package

MODULE = '''\
import functools


class Scheduler:
    limit = 3

    @functools.lru_cache
    def run_batch(self, batch: list[int], *, dry: bool = False) -> int:
        """Doc."""
        total = sum(batch)
        # a comment that belongs to the body

        return total

    def on_idle(self):
        pass


async def generate(body):
    return body
'''


def test_a_digest_is_the_hash_of_what_inspect_shows_of_the_loaded_function(package: Package, tmp_path: Path) -> None:
    sources = package({"srt/scheduler.py": MODULE})
    spec = importlib.util.spec_from_file_location("loaded_scheduler", tmp_path / "sglang/srt/scheduler.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    for name, function in {
        "Scheduler.run_batch": loaded.Scheduler.run_batch,
        "Scheduler.on_idle": loaded.Scheduler.on_idle,
        "generate": loaded.generate,
    }.items():
        found = sources.module("srt/scheduler.py").function(name)
        assert found is not None
        assert found.sha256 == hashlib.sha256(inspect.getsource(function).encode()).hexdigest()


def test_a_function_knows_its_target_and_its_signature(package: Package) -> None:
    found = package({"srt/scheduler.py": MODULE}).module("srt/scheduler.py").function("Scheduler.run_batch")
    assert found is not None
    assert found.target == "sglang.srt.scheduler.Scheduler.run_batch"
    assert found.signature == "(self, batch: list[int], *, dry: bool=False) -> int"


def test_a_function_that_is_not_there_is_none(package: Package) -> None:
    module = package({"srt/scheduler.py": MODULE}).module("srt/scheduler.py")
    assert module.function("Scheduler.gone") is None
    assert module.function("Gone.run_batch") is None


def test_a_wheel_an_unpacked_wheel_and_the_package_folder_read_the_same(package: Package, tmp_path: Path) -> None:
    package({"srt/scheduler.py": MODULE})
    wheel = tmp_path / "sglang-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in (tmp_path / "sglang").rglob("*.py"):
            archive.write(file, file.relative_to(tmp_path).as_posix())
    seen = set()
    for path in (wheel, tmp_path, tmp_path / "sglang"):
        sources = Sources(path)
        sources.module("srt/scheduler.py")
        seen.add((sources.version(), tuple(sources.digests().items())))
    assert len(seen) == 1
    assert next(iter(seen))[0] == "9.9.9"


def test_only_files_that_were_read_are_in_the_digests(package: Package) -> None:
    sources = package({"srt/a.py": "", "srt/b.py": ""})
    sources.module("srt/a.py")
    assert list(sources.digests()) == ["srt/a.py"]


def test_a_folder_without_the_package_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=f"{tmp_path} holds no SGLang package"):
        Sources(tmp_path)


def test_a_missing_and_a_broken_file_are_refused_by_name(package: Package) -> None:
    sources = package({"srt/broken.py": "def ("})
    with pytest.raises(ImportFileError, match=r"srt/gone.py is not there"):
        sources.module("srt/gone.py")
    with pytest.raises(ImportFileError, match=r"srt/broken.py is not readable Python"):
        sources.module("srt/broken.py")


def test_a_package_without_a_version_is_refused(package: Package) -> None:
    with pytest.raises(ImportFileError, match="states no version"):
        package({"_version.py": "version = 1\n"}).version()
