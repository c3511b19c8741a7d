from __future__ import annotations

import ast

import pytest

from kit.contract.literals import NotLiteral, Scope, assignments
from tests.contract.conftest import Package

NAMES = """
from sglang.srt.other import ELSEWHERE, Backend as Engine
from torch import REMOTE
WORDS = ["a", "b"]
NUMBERS = {3, 1, 2}
TWICE = 1
TWICE = 2
TABLE = {"x": object, "y": object}
"""
OTHER = """
ELSEWHERE: list[str] = ["far"]
class Backend:
    FULL = "full"
    OFF = "off"
    ALL = (FULL, OFF)
"""


@pytest.fixture
def scope(package: Package) -> Scope:
    sources = package({"srt/names.py": NAMES, "srt/other.py": OTHER})
    return Scope(sources, sources.module("srt/names.py"), {"here": ast.Constant("local")})


def evaluate(scope: Scope, text: str) -> object:
    return scope.value(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("-1", -1),
        ("10 * 1000 * 1000", 10_000_000),
        ("1 << 30", 2**30),
        ("('a', 'b')", ["a", "b"]),
        ("{'b', 'a'}", ["a", "b"]),
        ("{'k': [1], 'l': {}}", {"k": [1], "l": {}}),
        ("WORDS", ["a", "b"]),
        ("WORDS[0]", "a"),
        ("WORDS + ['c']", ["a", "b", "c"]),
        ("[*WORDS, 'c']", ["a", "b", "c"]),
        ("list(NUMBERS)", [1, 2, 3]),
        ("sorted(WORDS)", ["a", "b"]),
        ("ELSEWHERE", ["far"]),
        ("here", "local"),
        ("list(TABLE.keys())", ["x", "y"]),
        ("dataclasses.field(default_factory=list)", []),
        ("msgspec.field(default_factory=lambda: list(WORDS))", ["a", "b"]),
    ],
)
def test_what_the_source_states_is_read(scope: Scope, text: str, value: object) -> None:
    assert evaluate(scope, text) == value


def test_class_attributes_are_read_in_the_file_that_defines_the_class(package: Package) -> None:
    sources = package({"srt/names.py": "from sglang.srt.other import Backend\n", "srt/other.py": OTHER})
    scope = Scope(sources, sources.module("srt/names.py"))
    assert evaluate(scope, "Backend.ALL") == ["full", "off"]


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "REMOTE",
        "TWICE",
        "f(1)",
        "[m.name for m in WORDS]",
        "{**TABLE}",
        "WORDS.keys()",
        "a.b.c",
        "'a' if x else 'b'",
    ],
)
def test_what_only_running_code_can_tell_is_not_literal(scope: Scope, text: str) -> None:
    with pytest.raises(NotLiteral):
        evaluate(scope, text)


def test_a_name_bound_twice_is_not_an_assignment_to_rely_on() -> None:
    body = ast.parse("a = 1\na = 2\nb: int = 3\nc: int\nd, e = 1, 2\n").body
    assert {name: ast.unparse(value) for name, value in assignments(body).items()} == {"b": "3"}
