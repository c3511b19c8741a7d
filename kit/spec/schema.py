"""The JSON Schema of a spec, for editors."""

from __future__ import annotations

import json

from kit.spec.model import SCHEMA_VERSION, Spec

__all__ = ["SCHEMA_FILE", "schema_text"]

SCHEMA_FILE = f"spec.v{SCHEMA_VERSION}.schema.json"


def schema_text() -> str:
    """The schema as indented JSON, ending in a newline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://speckit.invalid/{SCHEMA_FILE}",
        **Spec.model_json_schema(),
    }
    return json.dumps(schema, indent=2, ensure_ascii=True) + "\n"
