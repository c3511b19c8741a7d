from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from kit.spec import SCHEMA_FILE, schema_text
from tests.spec.example import GOOD, changed

COMMITTED = Path(__file__).parents[2] / "specs" / "schema" / SCHEMA_FILE
SCHEMA: dict[str, Any] = json.loads(schema_text())


def validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def test_the_committed_schema_is_the_one_the_code_gives() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == schema_text(), "run `make schema`"


def test_every_field_explains_itself() -> None:
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    silent = [name for part in parts for name, field in part["properties"].items() if "description" not in field]
    assert silent == []


def test_an_editor_accepts_what_the_loader_accepts() -> None:
    validator().validate(yaml.safe_load(GOOD))


@pytest.mark.parametrize(
    "text",
    [
        changed("    topk: 4\n", "    top_k: 4\n"),
        changed("prompts: 96", "prompts: many"),
        changed("image: triton", "image: tensorrt"),
        changed("  - kind: adaptive", "  - kind: medusa"),
    ],
)
def test_an_editor_marks_what_the_loader_refuses(text: str) -> None:
    assert not validator().is_valid(yaml.safe_load(text))
