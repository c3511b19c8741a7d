"""docs/spec.md is written by hand, so its example, its fields and its defaults are held against the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from kit.errors import SpecError
from kit.load.workload import read_prompt_file
from kit.spec import (
    AdaptiveArm,
    Arrival,
    BaselineArm,
    Eagle3Arm,
    Limits,
    Server,
    ServerOverrides,
    Spec,
    Workload,
    parse_spec,
)
from kit.spec import model as parts

DOCUMENT = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")

SECTIONS: dict[str, type[BaseModel]] = {
    "## The experiment as a whole": Spec,
    "### models\n": parts.Models,
    "### models.target": parts.Target,
    "### models.draft": parts.Draft,
    "### engine\n": parts.Engine,
    "### engine.container": parts.Container,
    "### host": parts.Host,
    "### server": Server,
    "`kind: baseline`": BaselineArm,
    "`kind: eagle3`": Eagle3Arm,
    "`kind: adaptive`": AdaptiveArm,
    "### arms.server": ServerOverrides,
    "### workload": Workload,
    "### load\n": parts.Load,
    "### load.limits": Limits,
    "### load.arrival": Arrival,
    "### design": parts.Design,
    "### gate": parts.Gate,
    "### losslessness": parts.Losslessness,
    "### decision": parts.Decision,
    "### budget": parts.Budget,
}


def documented(heading: str) -> dict[str, str]:
    """Field and default of every row of the first table after `heading`."""
    table = DOCUMENT[DOCUMENT.index("\n" + heading) :].split("| --- | --- | --- |\n", 1)[1].split("\n\n", 1)[0]
    rows = (line.split(" | ") for line in table.splitlines())
    return {row[0].strip("| `"): row[1].strip("` ") for row in rows}


def declared(model: type[BaseModel]) -> dict[str, str]:
    return {name: default(model, name) for name in model.model_fields}


def default(model: type[BaseModel], name: str) -> str:
    field = model.model_fields[name]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "{}" if isinstance(value, BaseModel) else json.dumps(value)


@pytest.mark.parametrize("heading", SECTIONS, ids=str.strip)
def test_every_field_is_documented_with_its_default(heading: str) -> None:
    assert documented(heading) == declared(SECTIONS[heading])


def test_the_example_is_a_spec() -> None:
    example = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert example is not None
    assert parse_spec(example[1], name="docs/spec.md").name == "small_example"


def test_the_example_prompts_expand_as_described(tmp_path: Path) -> None:
    example = re.search(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    assert example is not None
    path = tmp_path / "prompts.jsonl"
    path.write_text(example[1], encoding="utf-8")
    prompts = {id_: text for id_, _, text in read_prompt_file(path)}
    assert list(prompts) == ["greeting", "sum-0000", "sum-0001", "sum-0002", "sum-0003"]
    assert prompts["sum-0001"] == "Write a Go function that counts vowels."
    assert prompts["sum-0002"] == "Write a Lua function that reverses a list."


@pytest.mark.parametrize(("written", "instead"), [(", topk: 1", ""), ("prompts: 210", "prompts: 100")])
def test_the_messages_shown_are_the_ones_given(written: str, instead: str) -> None:
    example = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert example is not None
    with pytest.raises(SpecError) as caught:
        parse_spec(example[1].replace(written, instead), name="specs/mine.yaml")
    assert f"    {caught.value}\n" in DOCUMENT
