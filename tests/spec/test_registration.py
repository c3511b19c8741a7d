from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kit.spec import Spec, canonical_json, expanded_json, parse_spec, prereg_hash, registered
from tests.spec.example import GOOD, changed

WRITTEN: dict[str, Any] = json.loads(expanded_json(parse_spec(GOOD, name="x.yaml")))

# Names, places and the way servers are started: the same experiment may be run elsewhere under another title.
IGNORED = (
    *("title", "question", "notes", "host"),
    *(f"engine.{name}" for name in ("runtime", "image", "startup_timeout_s", "container", "urls")),
)
BY_CONTENT = ("workload.files",)

# Fields that can have one value only, and the branching of a chain, which changes together with its draft tokens.
FIXED = ("schema_version", "decision.metric", "arms.1.topk")

ALTERNATIVES: tuple[Any, ...] = (
    *("flashinfer", "float16", "host", "local", "eagle3", "baseline", "k3", "tree", "other", "<user>{prompt}"),
    *({"ttft_s": 1.0}, {"rates": [1.0]}, {"chat": 0.5, "code": 0.5}, "phases"),
    *(["k3"], [1], [5, 8], {"other": "other"}, {"1": [7]}, None, False, True, 0.5, 0.9, 1, 2, 3, 4, 5, 512),
)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of everything in `value` that is not a list or mapping of fields."""
    if isinstance(value, dict) and value and path[-1:] not in [("candidates",), ("env",), ("extra_flags",)]:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for i, part in enumerate(value):
            yield from leaves(part, (*path, i))
    else:
        yield path


def with_another_value(path: tuple[str | int, ...]) -> Spec | None:
    """The example with a different legal value at `path`; None when there is none."""
    for value in ALTERNATIVES:
        data = copy.deepcopy(WRITTEN)
        owner: Any = data
        for part in path[:-1]:
            owner = owner[part]
        if value == owner[path[-1]]:
            continue
        owner[path[-1]] = value
        try:
            return Spec.model_validate_json(json.dumps(data))
        except ValidationError:
            continue
    return None


def spec_hash(spec: Spec) -> str:
    return prereg_hash(registered(spec, workload_hash="0" * 64))


def within(path: str, names: tuple[str, ...]) -> bool:
    return any(path == name or path.startswith(name + ".") for name in names)


@pytest.mark.parametrize("path", tuple(leaves(WRITTEN)), ids=lambda path: ".".join(map(str, path)))
def test_the_hash_reacts_to_every_field_but_names_places_and_runtime(path: tuple[str | int, ...]) -> None:
    written = ".".join(map(str, path))
    other = with_another_value(path)
    if written in FIXED or (path[0] == "arms" and path[2] == "kind"):
        assert other is None
    else:
        assert other is not None
        reacts = spec_hash(other) != spec_hash(parse_spec(GOOD, name="x.yaml"))
        assert reacts != within(written, IGNORED + BY_CONTENT)


def test_the_hash_reacts_to_the_content_of_the_prompts() -> None:
    spec = parse_spec(GOOD, name="x.yaml")
    assert registered(spec, workload_hash="a") != registered(spec, workload_hash="b")


def test_writing_a_default_out_does_not_change_the_hash() -> None:
    short = (
        changed("  waves: 4\n", "").replace("  page_size: 1\n", "").replace("losslessness:\n  tau_floor: 0.01\n", "")
    )
    assert spec_hash(parse_spec(short, name="x.yaml")) == spec_hash(parse_spec(GOOD, name="x.yaml"))


def test_the_hash_is_that_of_the_published_example() -> None:
    spec = {"delta": 0.02, "alpha": 0.05, "K": [1, 3, 5, 7], "concurrency": [1, 8, 32], "seed": 20250101}
    assert prereg_hash(spec) == "d526244a3d149858c014deb1cc061a037520d8863fbf2c7c91a1cb2ce1088eb9"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_canonical_json_is_ascii_and_reads_back_to_the_same_value(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert prereg_hash(dict(reversed(value.items()))) == prereg_hash(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": number})
