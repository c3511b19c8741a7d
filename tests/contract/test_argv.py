from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.contract import Values, load, versions

OLD, NEW = load("0.5.15.post1"), load("0.5.23")

GOOD = (
    "--model-path target --speculative-algorithm EAGLE3 --speculative-draft-model draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 "
    "--cuda-graph-bs-decode 1 2 4 8 --attention-backend=triton --disable-radix-cache "
    "--mem-fraction-static 0.5 --random-seed -1 --context-length 8k --log-level info"
)


@pytest.mark.parametrize("version", versions())
def test_a_full_command_line_has_no_problem(version: str) -> None:
    assert load(version).check_flags(GOOD.split()) == ()


@pytest.mark.parametrize(
    ("line", "field", "suggestion"),
    [
        ("--speculative-num-stepz 3", "--speculative-num-stepz", "--speculative-num-steps"),
        ("--speculative-num-st 3", "--speculative-num-st", "--speculative-num-steps"),
        ("--attention-backend tritn", "--attention-backend", "triton"),
        ("--disable-radix-cache yes", "yes", ""),
        ("--qqqqqq", "--qqqqqq", ""),
        ("--page-size", "--page-size", ""),
        ("--page-size --port 1", "--page-size", ""),
        ("--page-size=", "--page-size", ""),
        ("--page-size 1.5", "--page-size", ""),
        ("--mem-fraction-static half", "--mem-fraction-static", ""),
        ("--cuda-graph-bs-decode", "--cuda-graph-bs-decode", ""),
        ("--cuda-graph-bs-decode 1 two", "--cuda-graph-bs-decode", ""),
        ("--attention-backend=triton fa3", "fa3", ""),
        ("stray --port 1", "stray", ""),
        ("-- --port 1", "--", ""),
    ],
)
def test_what_sglang_would_refuse_is_one_problem(line: str, field: str, suggestion: str) -> None:
    (problem,) = OLD.check_flags(line.split())
    assert (problem.field, problem.suggestion) == (field, suggestion)


def test_an_option_can_exist_in_one_version_only() -> None:
    assert OLD.flag("--speculative-use-block-verification") is None
    assert NEW.flag("--speculative-use-block-verification") is not None
    assert OLD.check_flags(["--speculative-use-block-verification"]) != ()
    assert NEW.check_flags(["--speculative-use-block-verification"]) == ()


def test_choices_follow_the_version() -> None:
    line = ["--cuda-graph-backend-prefill", "tc_piecewise"]
    assert OLD.check_flags(line) == ()
    flag = NEW.flag("--cuda-graph-backend-prefill")
    assert flag is not None and flag.choices == ("full", "breakable", "disabled")


def test_an_alias_is_the_option() -> None:
    assert OLD.flag("--tp-size") is OLD.flag("--tensor-parallel-size")


def test_a_flag_says_what_it_takes() -> None:
    flag = OLD.flag("--cuda-graph-bs-decode")
    assert flag is not None
    assert (flag.values, flag.type, flag.field) == (Values.SOME, "List[int]", "cuda_graph_bs_decode")
    old_spelling = OLD.flag("--cuda-graph-bs")
    assert old_spelling is not None and old_spelling.replacement == "--cuda-graph-bs-decode"


def test_the_model_is_required() -> None:
    flag = OLD.flag("--model")
    assert flag is not None and flag.required


@given(st.lists(st.text() | st.sampled_from([*OLD.flags, "1", "-1", "x", "--port=3", "=", "-"]), max_size=6))
def test_any_command_line_is_judged_without_an_exception(argv: list[str]) -> None:
    for problem in OLD.check_flags(argv):
        assert str(problem)
