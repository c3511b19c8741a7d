"""Quotas and mixes: every class gets its part in the order that was asked for, and old specs stay as they were."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from pydantic import ValidationError

from kit.errors import SpecError
from kit.load import Prompt, Prompts, load_prompts, sent
from kit.pipeline.preview import preview
from kit.spec import Workload

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    slots = {"a": list("abcdefgh"), "b": list("stuvwxyz")}
    lines = [
        {"id": n, "class": n, "template": f"{n}: {{a}} and {{b}}", "slots": slots} for n in ("code", "chat", "tale")
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return tmp_path


def drawn(folder: Path, *, blocks: int = 1, **changes: Any) -> Prompts:
    return load_prompts(Workload(files=("p.jsonl",), **({"prompts": 40} | changes)), base=folder, blocks=blocks)


def classes(prompts: tuple[Prompt, ...]) -> list[str]:
    return [prompt.prompt_class for prompt in prompts]


@pytest.mark.parametrize(
    ("quotas", "counted"),
    [
        ({"code": 30, "chat": 10}, {"code": 30, "chat": 10}),
        ({"code": 0.75, "chat": 0.25}, {"code": 30, "chat": 10}),
        ({"code": 0.55, "chat": 0.28, "tale": 0.17}, {"code": 22, "chat": 11, "tale": 7}),
    ],
)
def test_a_quota_is_kept_in_the_run_and_in_every_window(
    folder: Path, quotas: dict[str, float], counted: dict[str, int]
) -> None:
    prompts = drawn(folder, quotas=quotas).prompts
    assert Counter(classes(prompts)) == counted
    for size in (4, 8, 20):
        for at in range(len(prompts) - size + 1):
            window = Counter(classes(prompts[at : at + size]))
            assert all(abs(window[name] - size * n / 40) <= 1 + 1e-9 for name, n in counted.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quotas": {"code": 30, "chat": 11}}, "add up to 41; give counts that add up to prompts"),
        ({"quotas": {"code": 0.5, "chat": 0.4}}, "add up to 0.9"),
        ({"quotas": {"code": 0.5, "chat": 20}}, "add up to 20.5"),
        ({"quotas": {"code": 40}, "classes": ("chat",)}, "quotas are for code and classes has chat"),
        ({"quotas": {"code": 20, "chat": 20}, "mix": "homogeneous"}, "quotas and mix: homogeneous both say"),
    ],
)
def test_quotas_that_do_not_add_up_or_are_said_twice_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Workload(files=("p.jsonl",), **({"prompts": 40} | changes))


def test_phases_send_one_class_after_the_other_in_every_cell_and_the_same_prompts(folder: Path) -> None:
    mixed, phased = drawn(folder), drawn(folder, mix="phases")
    assert phased.prompts == mixed.prompts
    for requests in (6, 20, 40):
        cell = sent(phased.prompts, requests, mix="phases")
        assert len(list(groupby(classes(cell)))) == 3
        assert set(cell) == set(sent(mixed.prompts, requests, mix="interleaved"))


def test_homogeneous_blocks_send_one_class_each_in_turns(folder: Path) -> None:
    prompts = drawn(folder, blocks=6, mix="homogeneous")
    parts = [prompts.part(block, 6) for block in range(6)]
    assert [set(classes(part)) for part in parts] == [{"code"}, {"chat"}, {"tale"}] * 2
    assert len({prompt.id for part in parts for prompt in part}) == 36


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mix": "homogeneous", "blocks": 4}, "4 blocks are no multiple of 3 classes"),
        ({"mix": "homogeneous", "classes": ("code",)}, "homogeneous needs two classes or more"),
        ({"mix": "phases", "classes": ("code",)}, "phases needs two classes or more"),
        ({"quotas": {"code": 39, "none": 1}}, "class `none` has 0 prompts"),
    ],
)
def test_a_mix_that_the_classes_do_not_fit_is_refused(folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        drawn(folder, **changes)


def test_the_hash_tells_mixes_apart_and_not_the_default_from_its_absence(folder: Path) -> None:
    hashes = {mix: drawn(folder, blocks=3, mix=mix).sha256 for mix in ("interleaved", "phases", "homogeneous")}
    assert len(set(hashes.values())) == 3
    assert hashes["interleaved"] == drawn(folder).sha256
    assert drawn(folder, quotas={"code": 20, "chat": 20}).sha256 == drawn(folder, classes=("code", "chat")).sha256


@pytest.mark.parametrize(
    ("name", "workload", "spec"),
    [
        ("quickstart", "d2946e7ab30b382d", "f5575ba1c847e5f8"),
        ("h200_smollm2_triton", "70926c7575bc29b9", "7ff4dde0468ae827"),
        ("cpu_gate", "5fb27078a9ac3cdd", "41be4f8196372832"),
    ],
)
def test_specs_without_quota_or_mix_keep_their_prompts_and_hashes(name: str, workload: str, spec: str) -> None:
    seen = preview(SPECS / f"{name}.yaml")
    assert (seen.prompts.sha256[:16], seen.spec_hash[:16]) == (workload, spec)


def altered(folder: Path, workload: str) -> Path:
    """The quickstart with lines added to its workload."""
    text = (SPECS / "quickstart.yaml").read_text().replace("  seed: 20260101\n", f"  seed: 20260101\n{workload}")
    copytree(SPECS / "workloads", folder / "workloads")
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


def test_a_quota_that_leaves_a_cell_without_the_class_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"workload\.quotas\.chat: too few for one in every cell"):
        preview(altered(tmp_path, "  quotas: {code: 340, chat: 3, reasoning: 42}\n"))


def test_a_homogeneous_block_stands_for_no_other(tmp_path: Path) -> None:
    text = altered(tmp_path, "  mix: homogeneous\n  classes: [code, chat, reasoning]\n").read_text()
    (tmp_path / "spec.yaml").write_text(text.replace("closing_baseline: false", "closing_baseline: true"))
    with pytest.raises(SpecError, match=r"design\.closing_baseline: holds one block against others"):
        preview(tmp_path / "spec.yaml")
    (tmp_path / "spec.yaml").write_text(text)
    seen = preview(tmp_path / "spec.yaml").prompts
    assert [set(classes(seen.part(block, 3))) for block in range(3)] == [{"code"}, {"chat"}, {"reasoning"}]
