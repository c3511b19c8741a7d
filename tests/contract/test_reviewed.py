from __future__ import annotations

from pathlib import Path

import pytest

from kit.contract.reviewed import Fact, Reading, facts, reviewed
from kit.contract.source import Sources
from kit.errors import ImportFileError
from tests.contract.conftest import Package

HOOK = "srt/hook.py:defaults"
TEXT = "def defaults(args):\n    return 48\n"


def digest(sources: Sources, name: str = HOOK) -> str:
    path, _, qualified_name = name.partition(":")
    function = sources.module(path).function(qualified_name)
    assert function is not None
    return function.sha256


def test_a_finding_holds_for_the_text_it_was_read_from(package: Package) -> None:
    sources = package({"srt/hook.py": TEXT})
    fact = Fact("limit", (Reading((HOOK,), frozenset({(digest(sources),)}), 48),))
    assert reviewed(sources, [fact]) == {"limit": {"value": 48, "read_from": [HOOK]}}


def test_a_changed_function_stops_the_extraction_and_is_named_in_one_line(package: Package) -> None:
    sources = package({"srt/hook.py": TEXT})
    fact = Fact("limit", (Reading((HOOK,), frozenset({("0" * 64,)}), 48),))
    with pytest.raises(ImportFileError) as caught:
        reviewed(sources, [fact])
    message = str(caught.value)
    assert message.startswith("SGLang 9.9.9: srt/hook.py:defaults is not the text that was read")
    assert digest(sources) in message
    assert "state 'limit' for it in kit/contract/reviewed.toml" in message
    assert "\n" not in message


def test_a_function_that_moved_away_is_named_too(package: Package) -> None:
    sources = package({"srt/hook.py": "x = 1\n"})
    fact = Fact("limit", (Reading((HOOK,), frozenset({("0" * 64,)}), 48),))
    with pytest.raises(ImportFileError, match=r"srt/hook\.py:defaults is gone"):
        reviewed(sources, [fact])


def test_of_several_functions_the_changed_one_is_named(package: Package) -> None:
    sources = package({"srt/hook.py": TEXT, "srt/other.py": "def other():\n    return 2\n"})
    names = (HOOK, "srt/other.py:other")
    fact = Fact("limit", (Reading(names, frozenset({(digest(sources), "0" * 64)}), 48),))
    with pytest.raises(ImportFileError, match=r"srt/other\.py:other is not the text"):
        reviewed(sources, [fact])


def test_texts_of_two_versions_never_combine(package: Package) -> None:
    sources = package({"srt/hook.py": TEXT, "srt/other.py": "def other():\n    return 2\n"})
    names = (HOOK, "srt/other.py:other")
    rows = frozenset({(digest(sources), "0" * 64), ("1" * 64, digest(sources, names[1]))})
    with pytest.raises(ImportFileError):
        reviewed(sources, [Fact("limit", (Reading(names, rows, 48),))])


def test_an_older_reading_is_found_after_a_newer_one(package: Package) -> None:
    sources = package({"srt/hook.py": TEXT})
    newer = Reading(("srt/new.py:elsewhere",), frozenset({("0" * 64,)}), "new")
    older = Reading((HOOK,), frozenset({(digest(sources),)}), "old")
    assert reviewed(sources, [Fact("limit", (newer, older))])["limit"] == {"value": "old", "read_from": [HOOK]}


def test_every_row_of_the_table_has_a_digest_for_every_function() -> None:
    for fact in facts():
        for reading in fact.readings:
            assert reading.digests, fact.name
            for row in reading.digests:
                assert len(row) == len(reading.functions), fact.name
                assert all(len(value) == 64 for value in row), fact.name


def test_the_table_can_be_read_from_another_file(tmp_path: Path) -> None:
    table = tmp_path / "reviewed.toml"
    table.write_text('[[a]]\nfunctions = ["f.py:f"]\ndigests = [["00"]]\nvalue = 1\n')
    assert facts(table) == (Fact("a", (Reading(("f.py:f",), frozenset({("00",)}), 1),)),)
