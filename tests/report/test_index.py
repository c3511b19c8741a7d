"""The index lists what lies in the folder and nothing that a report says can alter it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kit.report.index import index_text, write_index
from tests.report.hostile import HOSTILE

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def add(out: Path, name: str, **said: object) -> None:
    (out / name).mkdir()
    text = json.dumps({"title": name, "answer": "yes", "headings": [], "what_ran": {"created_utc": name[:10]}} | said)
    (out / name / "verdict.json").write_text(text)


def links(text: str) -> list[str]:
    tokens = [child for token in MARKDOWN.parse(text) for child in token.children or ()]
    return [str(token.attrGet("href")) for token in tokens if token.type == "link_open"]


def test_an_empty_folder_says_that_there_is_no_report(tmp_path: Path) -> None:
    assert "There is no report yet." in index_text(tmp_path)


def test_every_report_is_linked_newest_first(tmp_path: Path) -> None:
    for name in ("2026-01-02-b", "2026-03-01-a", "2026-01-02-a"):
        add(tmp_path, name)
    assert links(index_text(tmp_path))[::2] == ["2026-03-01-a.md", "2026-01-02-b.md", "2026-01-02-a.md"]


def test_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    add(tmp_path, "2026-01-02-a")
    first = write_index(tmp_path).read_bytes()
    assert write_index(tmp_path).read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-01-02-a", "README.md"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_add_no_link_and_no_row(tmp_path: Path, text: str) -> None:
    words = text.encode("utf-8", "ignore").decode()
    add(tmp_path, "2026-01-02-a", title=f"x{words}", answer=words, headings=[words], what_ran={"created_utc": words})
    shown = index_text(tmp_path)
    assert links(shown) == ["2026-01-02-a.md", "2026-01-02-a/"]
    assert [token.type for token in MARKDOWN.parse(shown)].count("tr_open") == 2


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"what_ran": null, "headings": null}'])
def test_a_verdict_that_cannot_be_read_is_listed_as_such(tmp_path: Path, content: str) -> None:
    add(tmp_path, "2026-01-02-a")
    (tmp_path / "2026-01-02-a" / "verdict.json").write_text(content)
    assert "cannot be read" in index_text(tmp_path)


def test_folders_that_are_no_reports_are_left_out(tmp_path: Path) -> None:
    add(tmp_path, ".unfinished-1")
    add(tmp_path, "a](x) (b")
    (tmp_path / "2026-01-02-empty").mkdir()
    assert links(index_text(tmp_path)) == []
