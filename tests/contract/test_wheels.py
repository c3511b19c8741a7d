"""The committed contracts against the wheels they come from, fetched anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kit.contract
from kit.contract import dump, extract, versions

FOLDER = Path(kit.contract.__file__).parent


@pytest.fixture(scope="module", params=versions())
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12", f"--dest={folder}"]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, f"sglang=={request.param}"], check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.contract
def test_the_committed_contract_is_what_the_wheel_says(wheel: Path) -> None:
    document = extract(wheel)
    committed = (FOLDER / f"sglang-{document['sglang']}.json").read_text(encoding="utf-8")
    assert dump(document) == committed
