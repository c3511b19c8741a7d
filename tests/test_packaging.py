"""The pins agree with each other, and installing the kit asks for nothing that it does not use."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kit import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMAGES = tomllib.loads((ROOT / "docker" / "images.lock.toml").read_text())


@pytest.mark.parametrize("variant", ["triton", "flashinfer"])
def test_an_extra_pins_exactly_what_its_image_holds(variant: str) -> None:
    pinned = dict(requirement.split("==") for requirement in PROJECT["optional-dependencies"][variant])
    assert pinned == IMAGES["variants"][variant]


def test_the_base_is_named_by_digest() -> None:
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", IMAGES["base"]["digest"])


def test_the_kit_itself_never_asks_for_an_engine() -> None:
    names = {re.split(r"[<>=]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert not names & {"sglang", "torch", "triton", "flashinfer-python"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_package_has_a_hash(lock: str) -> None:
    blocks = re.split(r"^(?=[a-z0-9])", (ROOT / lock).read_text(), flags=re.MULTILINE)[1:]
    assert len(blocks) > 20
    assert not [block.split()[0] for block in blocks if "--hash=sha256:" not in block]


def test_the_package_may_not_be_uploaded_under_a_name_that_is_taken() -> None:
    assert "Private :: Do Not Upload" in PROJECT["classifiers"]


def test_the_citation_names_the_version() -> None:
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()


def test_statistics_import_with_numpy_and_scipy_alone() -> None:
    refuse = "import sys; sys.modules.update(dict.fromkeys(['pydantic', 'yaml', 'duckdb', 'httpx', 'click', 'rich']))"
    done = subprocess.run([sys.executable, "-c", f"{refuse}; import kit.stats"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
