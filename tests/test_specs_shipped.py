"""What the repository ships: every spec loads, has the prompts it needs, and starts servers that SGLang accepts."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from kit import contract
from kit.load.workload import Prompts, load_prompts, read_prompt_file
from kit.sglang import launch_flags
from kit.spec import BaselineArm, Eagle3Arm, Spec, load_spec, parse_spec, prereg_hash, registered, schema_text

SPECS = Path(__file__).parents[1] / "specs"
SHIPPED = sorted(SPECS.glob("*.yaml"))
# First looks at a real engine, and a question about acceptance alone: none says which arm is faster.
UNDECIDED = {"cpu_quick", "cpu_gate", "image_flashinfer", "image_triton"}
PROMPT_FILES = sorted(SPECS.glob("workloads/*.jsonl"))

each_spec = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
each_prompt_file = pytest.mark.parametrize("path", PROMPT_FILES, ids=lambda path: path.stem)


def prompts_of(spec: Spec) -> Prompts:
    return load_prompts(spec.workload, base=SPECS)


def without_comments_and_in_another_order(path: Path) -> str:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(part) for key, part in reversed(value.items())}
        return [turned(part) for part in value] if isinstance(value, list) else value

    return yaml.safe_dump(turned(yaml.safe_load(path.read_text(encoding="utf-8"))), sort_keys=False)


def test_the_specs_that_the_documentation_names_are_here() -> None:
    names = {"quickstart", "a6000_triton", "a6000_flashinfer", "a6000_backends"}
    assert names | {"rtxpro6000x8_triton", "rtxpro6000x8_flashinfer"} <= {path.stem for path in SHIPPED}


@each_spec
def test_a_shipped_spec_loads_under_the_name_of_its_file(path: Path) -> None:
    assert load_spec(path).name == path.stem


@each_spec
def test_an_editor_finds_the_schema_and_the_spec_satisfies_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    reference = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", text.splitlines()[0])
    assert reference is not None
    assert (SPECS / reference[1]).read_text(encoding="utf-8") == schema_text()
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(yaml.safe_load(text))


@each_spec
def test_the_hash_survives_another_order_of_keys_and_the_loss_of_comments(path: Path) -> None:
    spec = load_spec(path)
    other = parse_spec(without_comments_and_in_another_order(path), name="other.yaml")
    assert prereg_hash(registered(other, workload_hash="w")) == prereg_hash(registered(spec, workload_hash="w"))


@each_spec
def test_a_real_engine_is_not_left_to_size_the_chunks_of_a_prefill_by_the_memory_it_finds(path: Path) -> None:
    spec = load_spec(path)
    assert spec.engine.runtime == "standin" or spec.server.chunked_prefill_size is not None


@each_spec
def test_there_are_prompts_for_every_block_and_none_is_sent_twice(path: Path) -> None:
    spec = load_spec(path)
    parts = [prompts_of(spec).part(block, spec.design.blocks) for block in range(spec.design.blocks)]
    largest = max(spec.load.requests(level) for level in spec.load.concurrency)
    assert min(len(part) for part in parts) >= largest
    texts = [prompt.text for part in parts for prompt in part]
    assert len(set(texts)) == len(texts)


@each_spec
def test_the_classes_have_equal_shares(path: Path) -> None:
    shares = Counter(prompt.prompt_class for prompt in prompts_of(load_spec(path)).prompts)
    assert len(shares) > 1
    assert len(set(shares.values())) == 1


@each_spec
def test_every_prompt_leaves_room_for_its_answer_and_the_draft_slots(path: Path) -> None:
    spec = load_spec(path)
    # A text of n characters has fewer than n / 2 tokens in any tokenizer of this size; twice the true number is usual.
    longest = max(len(prompt.text) / 2 + prompt.max_new_tokens for prompt in prompts_of(spec).prompts)
    reserved = max(arm.draft_tokens * arm.topk for arm in spec.arms if isinstance(arm, Eagle3Arm))
    assert longest + reserved < spec.server.context_length


@each_spec
def test_sglang_accepts_every_command_line(path: Path) -> None:
    spec = load_spec(path)
    rules = contract.load(spec.engine.sglang)
    problems = {arm.name: rules.check_flags(launch_flags(spec, arm)) for arm in spec.arms}
    assert problems == {arm.name: () for arm in spec.arms}


@each_spec
def test_every_measured_concurrency_has_a_cuda_graph_of_its_own_size(path: Path) -> None:
    spec = load_spec(path)
    assert spec.server.disable_cuda_graph or set(spec.load.concurrency) <= set(spec.server.cuda_graph_batch_sizes or ())


@each_spec
def test_a_speculative_arm_differs_from_its_baseline_in_nothing_but_speculation(path: Path) -> None:
    spec = load_spec(path)
    for arm in spec.arms:
        reference = spec.reference(arm)
        if reference is not None:
            assert arm.server == reference.server, arm.name
    assert any(isinstance(arm, BaselineArm) for arm in spec.arms)


@pytest.mark.parametrize("path", [p for p in SHIPPED if p.stem not in UNDECIDED], ids=lambda path: path.stem)
def test_a_decision_is_possible(path: Path) -> None:
    spec = load_spec(path)
    assert spec.design.blocks >= 3
    assert spec.load.waves >= 4
    # Noise and drift have to be measured on a real engine; the simulator's are part of its world.
    assert (spec.design.aa_speed and spec.design.closing_baseline) or spec.engine.runtime == "standin"


@each_prompt_file
def test_no_prompt_of_a_file_occurs_twice(path: Path) -> None:
    rows = read_prompt_file(path)
    assert len({id_ for id_, _, _ in rows}) == len(rows)
    assert len({text for _, _, text in rows}) == len(rows)


@each_prompt_file
def test_no_template_leaves_a_slot_open(path: Path) -> None:
    assert [id_ for id_, _, text in read_prompt_file(path) if re.search(r"\{\w+\}", text)] == []


@each_prompt_file
def test_no_template_is_more_than_a_third_of_its_class(path: Path) -> None:
    rows = read_prompt_file(path)
    classes = Counter(prompt_class for _, prompt_class, _ in rows)
    templates = Counter((prompt_class, re.sub(r"-\d+$", "", id_)) for id_, prompt_class, _ in rows)
    assert [name for (prompt_class, name), count in templates.items() if 3 * count > classes[prompt_class]] == []


@pytest.mark.parametrize(
    ("name", "least", "classes"),
    [
        ("general", 300, "repetitive open_ended code agentic reasoning chat encyclopedic"),
        ("coding_agentic", 750, "code_generation debugging repository_issue system_design"),
    ],
)
def test_each_class_has_enough_prompts(name: str, least: int, classes: str) -> None:
    counts = Counter(prompt_class for _, prompt_class, _ in read_prompt_file(SPECS / "workloads" / f"{name}.jsonl"))
    assert set(counts) == set(classes.split())
    assert min(counts.values()) >= least


def test_general_prompts_are_short_and_long() -> None:
    words = [len(text.split()) for _, _, text in read_prompt_file(SPECS / "workloads" / "general.jsonl")]
    assert min(words) <= 20
    assert max(words) >= 150
