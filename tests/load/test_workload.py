"""Prompts: seeded, distinct, mixed by class, refused in one line when they cannot be had."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kit.errors import SpecError
from kit.load import Prompts, load_prompts, read_prompt_file
from kit.spec import Workload

CLASSES = ("code", "chat", "reasoning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    slots = {"a": list("abcdef"), "b": list("uvwxyz")}
    lines: list[dict[str, Any]] = [
        {"id": name, "class": name, "template": f"{name}: {{a}} and {{b}}", "slots": slots} for name in CLASSES
    ]
    lines.append({"id": "plain", "class": "chat", "text": "Hello there."})
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return tmp_path


def drawn(folder: Path, **changes: Any) -> Prompts:
    return load_prompts(Workload(files=("p.jsonl",), **({"prompts": 30} | changes)), base=folder)


def test_a_template_stands_for_the_product_of_its_slots(folder: Path) -> None:
    rows = read_prompt_file(folder / "p.jsonl")
    assert len(rows) == 3 * 36 + 1
    assert ("code-0000", "code", "code: a and u") in rows
    assert len({text for _, _, text in rows}) == len(rows)


def test_classes_have_equal_shares_and_every_window_mixes_them(folder: Path) -> None:
    prompts = drawn(folder).prompts
    assert Counter(p.prompt_class for p in prompts) == dict.fromkeys(CLASSES, 10)
    for start in range(28):
        assert len({p.prompt_class for p in prompts[start : start + 3]}) == 3


def test_no_prompt_is_sent_twice(folder: Path) -> None:
    prompts = drawn(folder, prompts=90).prompts
    assert len({p.text for p in prompts}) == 90


def test_blocks_get_disjoint_parts_of_equal_size(folder: Path) -> None:
    prompts = drawn(folder)
    parts = [prompts.part(block, 3) for block in range(3)]
    assert [len(part) for part in parts] == [10, 10, 10]
    assert len({p.id for part in parts for p in part}) == 30


def test_the_seed_decides_prompts_and_lengths_and_the_hash_tells(folder: Path) -> None:
    assert drawn(folder, seed=1) == drawn(folder, seed=1)
    assert drawn(folder, seed=1).sha256 != drawn(folder, seed=2).sha256


def test_output_lengths_stay_in_their_range_and_reach_both_ends(folder: Path) -> None:
    lengths = {p.max_new_tokens for p in drawn(folder, prompts=90, min_output_tokens=5, max_output_tokens=7).prompts}
    assert lengths == {5, 6, 7}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"p\.jsonl:1: "),
        ('{"id": "a", "class": "code"}', "give either"),
        ('{"id": "a", "class": "code", "text": "x", "template": "y"}', "give either"),
        ('{"id": "a", "class": "code", "text": "x", "colour": 1}', "colour"),
        ('{"id": "a", "class": "code", "template": "x", "slots": {"n": ["1"]}}', "slot `n` does not occur"),
        ('{"id": "a", "class": "code", "template": "x {m}", "slots": {}}', "slot `m`, which has no values"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "p.jsonl").write_text(line + "\n")
    with pytest.raises(SpecError, match=message) as caught:
        read_prompt_file(tmp_path / "p.jsonl")
    assert "\n" not in str(caught.value)


def test_too_few_prompts_of_a_class_are_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match="class `code` has 36 prompts"):
        drawn(folder, prompts=200)


def test_a_file_outside_the_folder_of_the_spec_is_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match="leaves the folder"):
        load_prompts(Workload(files=("../p.jsonl",), prompts=3), base=folder / "inner")


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.jsonl"):
        load_prompts(Workload(files=("none.jsonl",), prompts=3), base=folder)


def test_prompts_are_set_into_the_chat_format(folder: Path) -> None:
    workload = Workload(files=("p.jsonl",), prompts=3)
    plain = load_prompts(workload, base=folder)
    turned = load_prompts(workload, base=folder, prompt_format="<user>{prompt}<assistant>")
    assert [p.text for p in turned.prompts] == [f"<user>{p.text}<assistant>" for p in plain.prompts]
    assert turned.sha256 != plain.sha256
