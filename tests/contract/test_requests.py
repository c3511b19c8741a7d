from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.contract import Problem, load, versions
from kit.contract.requests import fits

OLD, NEW = load("0.5.15.post1"), load("0.5.23")

GOOD: dict[str, object] = {
    "rid": "r-000001",
    "text": "The capital of France is",
    "stream": True,
    "sampling_params": {"temperature": 0, "max_new_tokens": 128, "ignore_eos": True},
}


def fields(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.field for problem in problems]


@pytest.mark.parametrize("version", versions())
def test_the_request_a_benchmark_sends_has_no_problem(version: str) -> None:
    assert load(version).check_request(GOOD) == ()


@pytest.mark.parametrize("version", versions())
def test_seed_is_refused_and_the_right_name_suggested(version: str) -> None:
    payload = GOOD | {"sampling_params": {"temperature": 0.7, "seed": 7}}
    (problem,) = load(version).check_request(payload)
    assert problem.field == "sampling_params.seed"
    assert problem.value == 7
    assert problem.suggestion == "sampling_seed"
    assert str(problem) == (f"sampling_params.seed = 7: SGLang {version} has no such sampling key; use sampling_seed")


def test_a_payload_can_be_valid_in_one_version_only() -> None:
    payload = GOOD | {"sampling_params": {"beam_width": 2}}
    assert NEW.check_request(payload) == ()
    assert fields(OLD.check_request(payload)) == ["sampling_params.beam_width"]


def test_grammars_that_exclude_each_other_depend_on_the_version() -> None:
    payload = GOOD | {"sampling_params": {"regex": "a", "structural_tag": "{}"}}
    assert OLD.check_request(payload) == ()
    assert fields(NEW.check_request(payload)) == ["sampling_params"]


@pytest.mark.parametrize(
    ("params", "suggestion"),
    [
        ({"max_tokens": 4}, "max_new_tokens"),
        ({"temprature": 1.0}, "temperature"),
        ({"stream": True}, "stream beside sampling_params"),
        ({"zzzzzz": 1}, ""),
    ],
)
def test_an_unknown_sampling_key_gets_the_nearest_name_and_its_place(
    params: dict[str, object], suggestion: str
) -> None:
    (problem,) = OLD.check_request(GOOD | {"sampling_params": params})
    assert problem.suggestion == suggestion


def test_a_sampling_key_at_the_top_is_ignored_by_sglang_and_therefore_a_problem() -> None:
    (problem,) = OLD.check_request(GOOD | {"max_new_tokens": 4})
    assert "ignores this key in silence" in problem.message
    assert problem.suggestion == "sampling_params.max_new_tokens"


def test_keys_that_sglang_fills_in_itself_are_refused() -> None:
    assert fields(OLD.check_request(GOOD | {"sampling_params": {"stop_strs": ["a"]}})) == ["sampling_params.stop_strs"]


def test_a_batch_is_checked_item_by_item() -> None:
    payload = {"text": ["a", "b"], "sampling_params": [{"n": 1}, {"seed": 1}]}
    assert fields(OLD.check_request(payload)) == ["sampling_params[1].seed"]


@pytest.mark.parametrize(
    ("params", "refused"),
    [
        ({"temperature": -1}, True),
        ({"temperature": 0}, False),
        ({"temperature": math.nan}, True),
        ({"temperature": "hot"}, True),
        ({"temperature": None}, False),
        ({"max_new_tokens": "16"}, True),
        ({"max_new_tokens": 16.5}, True),
        ({"max_new_tokens": True}, True),
        ({"top_p": 0.0}, True),
        ({"top_p": 1.0}, False),
        ({"top_k": -1}, False),
        ({"top_k": 0}, True),
        ({"repetition_penalty": 2.5}, True),
        ({"stop": ["a"]}, False),
        ({"stop": [1]}, True),
        ({"stop_token_ids": [1, 2]}, False),
        ({"logit_bias": {"5": 1.0}}, False),
        ({"logit_bias": {"5": "x"}}, True),
    ],
)
def test_values_are_checked_against_type_and_limits(params: dict[str, object], refused: bool) -> None:
    assert bool(OLD.check_request(GOOD | {"sampling_params": params})) is refused


@pytest.mark.parametrize("inputs", [{}, {"text": "a", "input_ids": [1]}, {"text": ""}, {"input_ids": []}, {"text": 5}])
def test_the_input_is_given_once_and_not_empty(inputs: dict[str, object]) -> None:
    assert OLD.check_request(inputs) != ()


def test_a_request_id_must_not_look_like_a_health_check() -> None:
    assert fields(OLD.check_request(GOOD | {"rid": "HEALTH_CHECK_1"})) == ["rid"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.text() | st.sampled_from(sorted(OLD.rules.request)) | st.sampled_from(sorted(OLD.sampling_keys))


@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=4), max_size=4))
def test_any_json_object_is_judged_without_an_exception(payload: dict[str, object]) -> None:
    for problem in OLD.check_request(payload):
        assert str(problem)


@pytest.mark.parametrize(
    ("annotation", "value", "fit"),
    [
        ("int | None", None, True),
        ("int | None", "a", False),
        ("Annotated[Optional[Union[List[List[int]], List[int]]], PlainValidator(f)]", [[1], [2]], True),
        ("Annotated[Optional[Union[List[List[int]], List[int]]], PlainValidator(f)]", [1, "a"], False),
        ("Dict[str, Modality]", {"a": object()}, True),
        ("Dict[str, int]", [1], False),
        ("float", 1, True),
        ("Any", object(), True),
    ],
)
def test_annotations_are_understood(annotation: str, value: object, fit: bool) -> None:
    assert fits(annotation, value) is fit
